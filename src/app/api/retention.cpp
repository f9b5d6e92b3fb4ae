// SPDX-License-Identifier: Apache-2.0
#include "app/api/retention.hpp"

#include <charconv>
#include <exception>
#include <string>
#include <utility>

#include "core/option_check.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"

namespace postrider::api {
namespace {

constexpr Duration pause = std::chrono::minutes{1};

std::int64_t seconds_of(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return 86'400;
    case 'w':
      return 7 * 86'400;
    default:
      return 0;
  }
}

}  // namespace

Duration parse_age(std::string_view option, std::string_view text) {
  constexpr std::int64_t most = std::int64_t{1000} * 365 * 86'400;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::int64_t seconds = unit.size() == 1 ? seconds_of(unit.front()) : 0;
  if (error == std::errc{} && seconds != 0 && count == 0) {
    throw Error(ErrorCode::invalid_argument, std::string(option) + " '" + std::string(text) + "' is refused",
                "an age is more than nothing: every event would be removed", "write 1s if that is meant");
  }
  if (error != std::errc{} || count < 1 || seconds == 0 || count > most / seconds) {
    throw Error(ErrorCode::invalid_argument, std::string(option) + " '" + std::string(text) + "' is refused",
                "it is no time", "write a whole number and s, m, h, d or w, as in 90d");
  }
  return std::chrono::seconds{count * seconds};
}

std::int64_t purge_entries(EntryStore& store, TimePoint time,
                           const std::function<bool(std::int64_t removed)>& go_on) {
  std::int64_t removed = 0;
  for (;;) {
    const std::int64_t now = store.purge_before(time, purge_batch);
    removed += now;
    if (!go_on(removed) || now < static_cast<std::int64_t>(purge_batch)) return removed;
  }
}

Retention::Retention(EntryStore& store, Duration age, Clock& clock, LogCallback log)
    : store_(store), age_(age), clock_(clock), log_(guarded(std::move(log))), task_(pause, clock, [this] {
        run();
      }) {}

void Retention::stop() {
  stopping_ = true;
  task_.stop();
}

void Retention::run() noexcept {
  try {
    const std::int64_t before = removed_;
    std::int64_t last = 0;
    purge_entries(store_, clock_.now() - age_, [&](std::int64_t removed) {
      removed_ += removed - last;
      last = removed;
      return !stopping_;
    });
    if (std::exchange(failing_, false)) log_(LogLevel::info, "postrider: old events are being removed again");
    if (removed_ > before) {
      log_(LogLevel::info, "postrider: removed " + std::to_string(removed_ - before) + " old events");
    }
  } catch (const std::exception& error) {
    if (!std::exchange(failing_, true)) {
      log_(LogLevel::warning, "postrider: old events cannot be removed now, trying again: " + what_of(error));
    }
  }
}

}  // namespace postrider::api
