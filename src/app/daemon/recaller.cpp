// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/recaller.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "core/option_check.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/outbox_admin.hpp"

namespace postrider::daemon {

Recaller::Recaller(Storage& storage, ParkedSinks& parked, std::function<void()> look, LogCallback log)
    : storage_(storage), parked_(parked), look_(std::move(look)), log_(guarded(std::move(log))) {}

void Recaller::start() {
  if (thread_.joinable()) return;
  parked_.open();
  thread_ = std::thread([this] { run(); });
}

void Recaller::stop() {
  if (!thread_.joinable()) return;
  parked_.close();
  thread_.join();
}

Parking::RecallEnd Recaller::recall(const ParkedSinks::Recall& recall) {
  bool cut_short = false;
  OutboxAdmin admin(storage_, [&](std::int64_t) {
    look_();
    cut_short = !parked_.goes_on(recall.sink);
    return !cut_short;
  });
  const std::int64_t events = admin.requeue({.error_contains = error_of_away(recall.name), .delayed = true});
  if (events > 0) {
    log_(LogLevel::info, "postrider: sink '" + recall.name +
                             "' takes events again: " + counted(static_cast<std::size_t>(events), "event") +
                             " that waited for it come at once");
  }
  if (cut_short) return Parking::RecallEnd::unfinished;
  return events == 0 ? Parking::RecallEnd::found_none : Parking::RecallEnd::found_some;
}

void Recaller::run() noexcept {
  while (const std::optional<ParkedSinks::Recall> work = parked_.next()) {
    Parking::RecallEnd end = Parking::RecallEnd::unfinished;
    try {
      end = recall(*work);
      failing_ = false;
    } catch (const std::exception& error) {
      if (!std::exchange(failing_, true)) {
        log_(LogLevel::warning, "postrider: cannot recall events that wait for sink '" + work->name +
                                    "', trying again: " + what_of(error));
      }
    }
    parked_.ended(work->sink, end);
  }
}

}  // namespace postrider::daemon
