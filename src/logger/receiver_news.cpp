// SPDX-License-Identifier: Apache-2.0
#include "logger/receiver_news.hpp"

#include <string_view>
#include <utility>

#include "core/wording.hpp"

namespace postrider::logger {
namespace {

constexpr Duration apart = LimitedNews::apart;
/// How long a receiver may ask for pauses, and take nothing, before people are told.
constexpr Duration patience = std::chrono::minutes{1};

Duration in_seconds(SteadyPoint::duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time);
}

/// What only a person can mend.
std::string_view hint_for(int status) {
  constexpr std::string_view other_address = ". Hint: is base_url that of an Event Log API?";
  // It answers well, but not as one: a login page, for example.
  if (status >= 200 && status < 300) return other_address;
  switch (status) {
    case 401:
    case 403:
      return ". Hint: are the token and its rights what the receiver wants?";
    case 404:
    case 405:
      return other_address;
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
    const bool throttled = result.verdict == SendVerdict::throttled;
    if (!result.items.empty() || (result.verdict != SendVerdict::transient && !throttled)) {
      const auto since = std::exchange(failing_since_, std::nullopt);
      if (!since || !std::exchange(told_, false)) return;
      text = "postrider: the event log takes events again, after " + text_of(in_seconds(now - *since));
    } else {
      if (!failing_since_) failing_since_ = now;
      const Duration taken_none = std::chrono::duration_cast<Duration>(now - *failing_since_);
      // To ask for a pause is no failure, unless nothing else comes.
      if (throttled && taken_none < patience) return;
      // A receiver that fails every now and then must not fill the log.
      if (told_at_ && now - *told_at_ < apart) return;
      told_at_ = now;
      told_ = true;
      const std::string_view hint = hint_for(result.status);
      level = hint.empty() ? LogLevel::warning : LogLevel::error;
      text = "postrider: the event log takes no events";
      if (throttled) text += ", and has asked for pauses for " + text_of(in_seconds(taken_none));
      text += ": " + result.reason + "; " + meanwhile_;
      text += hint;
    }
  }
  log_(level, text);
}

void RefusalNews::heard(const SendItem& refusal) {
  {
    const MutexLock lock(mutex_);
    last_ = refusal;
  }
  tell(news_.add(1, clock_.steady_now()));
}

void RefusalNews::tell_held_back(bool all) {
  tell(all ? news_.rest() : news_.due(clock_.steady_now()));
}

void RefusalNews::tell(std::uint64_t count) {
  if (count == 0) return;
  std::string text = "postrider: the event log has refused " +
                     (count == 1 ? std::string("an event") : counted(count, "event")) + " for good ";
  if (count > 1) text += "since the last such line, the last of them ";
  {
    const MutexLock lock(mutex_);
    text += "(" + std::to_string(last_.status) + "): " + last_.reason;
    // By far the most common cause, and the same for every event.
    if (last_.status == 422 && last_.reason.find("applicationId is missing") != std::string::npos)
      text += ". Hint: set LoggerOptions::application_id (application-id in [eventlog.async])";
  }
  log_(LogLevel::warning, text);
}

}  // namespace postrider::logger
