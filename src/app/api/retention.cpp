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

}  // namespace

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
    : store_(store),
      age_(age),
      clock_(clock),
      log_(guarded(std::move(log))),
      task_(
          pause, clock, [this] { run(); }, true) {}

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
