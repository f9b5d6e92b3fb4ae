// SPDX-License-Identifier: Apache-2.0
#include "logger/receiver_news.hpp"

#include <string_view>
#include <utility>

#include "core/wording.hpp"

namespace postrider::logger {
namespace {

constexpr Duration apart = std::chrono::minutes{1};

/// What only a person can mend.
std::string_view hint_for(int status) {
  switch (status) {
    case 401:
    case 403:
      return ". Hint: are the token and its rights what the receiver wants?";
    case 404:
    case 405:
      return ". Hint: is base_url that of an Event Log API?";
    default:
      return "";
  }
}

}  // namespace

void ReceiverNews::heard(const SendResult& result) {
  std::string text;
  LogLevel level = LogLevel::info;
  {
    const MutexLock lock(mutex_);
    const SteadyPoint now = clock_.steady_now();
    if (result.verdict == SendVerdict::throttled) return;
    if (!result.items.empty() || result.verdict != SendVerdict::transient) {
      const auto since = std::exchange(failing_since_, std::nullopt);
      if (!since || !std::exchange(told_, false)) return;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *since);
      text = "postrider: the event log takes events again, after " + text_of(seconds);
    } else {
      if (!failing_since_) failing_since_ = now;
      // A receiver that fails every now and then must not fill the log.
      if (told_at_ && now - *told_at_ < apart) return;
      told_at_ = now;
      told_ = true;
      const std::string_view hint = hint_for(result.status);
      level = hint.empty() ? LogLevel::warning : LogLevel::error;
      text = "postrider: the event log takes no events: " + result.reason + "; " + meanwhile_;
      text += hint;
    }
  }
  log_(level, text);
}

}  // namespace postrider::logger
