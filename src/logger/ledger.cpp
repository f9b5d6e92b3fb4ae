// SPDX-License-Identifier: Apache-2.0
#include "logger/ledger.hpp"

#include <string>
#include <utility>

#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"

namespace postrider {

std::string_view to_string(LossReason reason) noexcept {
  constexpr std::array<std::string_view, static_cast<std::size_t>(LossReason::count_of_reasons)> names{
      "queue_full",
      "retries_exhausted",
      "retry_requeue_failed",
      "retry_executor_rejected",
      "shutdown_in_progress",
      "shutdown_pending_retry",
      "spillover_queue_full",
      "spillover_max_events",
      "spillover_max_size",
      "spillover_io_error",
      "serialization",
      "rejected",
      "corrupted",
      "spillover_removed",
      "invalid_entry"};
  const auto index = static_cast<std::size_t>(reason);
  return index < names.size() ? names[index] : "unknown";
}

namespace logger {
namespace {

/// The books have changed: what tests wait for. No lock is held here.
void booked() {
  failpoint("logger.booked");
}

/// Which limit was reached, where one can be raised.
std::string_view hint_for(LossReason reason) {
  switch (reason) {
    case LossReason::queue_full:
    case LossReason::retries_exhausted:
    case LossReason::retry_requeue_failed:
    case LossReason::retry_executor_rejected:
    case LossReason::shutdown_pending_retry:
      return ". Hint: with a spillover_path it would have gone to disk";
    case LossReason::spillover_queue_full:
      return ". Hint: the disk does not keep up; raise queue_capacity and ring_bytes for bursts";
    case LossReason::spillover_max_events:
      return ". Hint: the spill folder is full; raise max_spillover_events";
    case LossReason::spillover_max_size:
      return ". Hint: the spill folder is full; raise max_spillover_bytes";
    case LossReason::spillover_removed:
      return ". Hint: somebody removed or cut files of the spill folder; shut the logger down before that";
    case LossReason::invalid_entry:
      return ". Hint: the Event Log API would refuse it; EventLogEntry::fault() says why";
    case LossReason::serialization:
      return ". Hint: an entry may have about a sixteenth of ring_bytes";
    default:
      return "";
  }
}

}  // namespace

thread_local constinit bool Ledger::telling_ = false;

Ledger::Ledger(const LoggerOptions& options, EntryDefaults defaults)
    : options_(options), defaults_(std::move(defaults)) {}

void Ledger::enter(std::span<EventRef> events) {
  const MutexLock lock(mutex_);
  for (EventRef& event : events) event.epoch = epoch_;
  outstanding_[epoch_] += events.size();
}

void Ledger::leave(const EventRef& event) noexcept {
  const bool freed = event.lane->release(event);
  const bool last = outstanding_[event.epoch].fetch_sub(1) == 1;
  if ((freed || last) && waiters_.load() > 0) {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  }
}

void Ledger::delivered(std::span<const EventRef> events) noexcept {
  delivered_ += events.size();
  options_.metrics->increment_logger_sent(events.size());  // first: who waits in flush() shall find it
  for (const EventRef& event : events) leave(event);
  booked();
}

void Ledger::spilled(std::span<const EventRef> events) noexcept {
  spilled_ += events.size();
  options_.metrics->increment_logger_spilled(events.size());
  for (const EventRef& event : events) leave(event);
  booked();
}

void Ledger::dead(const EventRef& event) noexcept {
  ++dead_;
  options_.metrics->increment_logger_dead(1);
  leave(event);
  booked();
}

void Ledger::left_in_ring(const EventRef& event) noexcept {
  ++left_;
  --outstanding_[event.epoch];
}

bool Ledger::append_event(std::string& out, const EventRef& event) const {
  std::string key;
  event.append_key(key);
  return append_members(out, event.packed(), {event.stamp(), key}, defaults_);
}

std::size_t Ledger::event_room(const EventRef& event) const noexcept {
  return members_room(event.packed(), {}, defaults_) + EventRef::key_room;
}

char* Ledger::write_event(char* out, const EventRef& event, TimeWriter& times) const {
  std::array<char, EventRef::key_room> key;  // NOLINT: written right away
  const char* const end = event.put_key(key.data());
  const EntryStamp stamp{event.stamp(), {key.data(), static_cast<std::size_t>(end - key.data())}};
  return write_members(out, event.packed(), stamp, defaults_, times);
}

void Ledger::lost(const EventRef& event, LossReason reason) noexcept {
  count_lost(reason, 1);
  const bool told = options_.on_loss && !telling_ && !event.head().quiet();
  std::string json;
  if (told) {
    try {
      json = "{";
      json += append_event(json, event) ? "}" : "";
    } catch (...) {
      json.clear();  // out of memory: the reason is told without it
    }
  }
  if (told) tell({reason, 1, json});  // first: who waits in flush() shall have been told
  leave(event);
  booked();
}

void Ledger::replayed(std::uint64_t count) noexcept {
  delivered_ += count;
  replayed_ += count;
  options_.metrics->increment_logger_sent(count);
  options_.metrics->increment_logger_replayed(count);
}

void Ledger::retried(std::uint64_t count) noexcept {
  retries_ += count;
  booked();
}

void Ledger::replayed_dead() noexcept {
  ++dead_;
  options_.metrics->increment_logger_dead(1);
}

void Ledger::lost_from_disk(std::string_view members, LossReason reason) noexcept {
  count_lost(reason, 1);
  try {
    tell({reason, 1, "{" + std::string(members) + "}"});
  } catch (...) {
    tell({reason, 1, {}});
  }
}

void Ledger::lost_unseen(std::uint64_t count, LossReason reason) noexcept {
  count_unseen(count, reason);
  tell_unseen(count, reason);
  if (count > 0) booked();
}

void Ledger::count_unseen(std::uint64_t count, LossReason reason) noexcept {
  if (count > 0) count_lost(reason, count);
}

void Ledger::tell_unseen(std::uint64_t count, LossReason reason) noexcept {
  if (count > 0) tell({reason, count, {}});
}

void Ledger::refused(const EventLogEntry& entry, LossReason reason) noexcept {
  ++refused_;
  try {
    count_lost(reason, 1, reason == LossReason::invalid_entry ? entry.fault() : "");
  } catch (...) {
    count_lost(reason, 1);  // out of memory
  }
  if (!options_.on_loss || telling_) return;
  try {
    std::string json = "{";
    append_members(json, entry.packed(), {options_.clock->now(), ""}, defaults_);
    tell({reason, 1, json += "}"});
  } catch (...) {
    tell({reason, 1, {}});
  }
}

void Ledger::count_lost(LossReason reason, std::uint64_t count, std::string_view detail) noexcept {
  lost_[static_cast<std::size_t>(reason)] += count;
  options_.metrics->increment_logger_lost(reason, count);
  LimitedNews& news = news_[static_cast<std::size_t>(reason)];
  write_of_loss(reason, news.add(count, options_.clock->steady_now()), detail);
}

void Ledger::tell_held_back(bool all) noexcept {
  const SteadyPoint now = options_.clock->steady_now();
  for (std::size_t i = 0; i < news_.size(); ++i) {
    write_of_loss(static_cast<LossReason>(i), all ? news_[i].rest() : news_[i].due(now));
  }
}

void Ledger::write_of_loss(LossReason reason, std::uint64_t count, std::string_view detail) noexcept {
  if (count == 0) return;
  try {
    std::string text = "postrider: the logger has lost " + counted(count, "event") + ": ";
    text.append(to_string(reason));
    if (!detail.empty()) text.append(", the last: ").append(detail);
    text.append(hint_for(reason));
    options_.log(LogLevel::warning, text);
  } catch (...) {
    // Out of memory: the books have it, and the line at the end.
  }
}

void Ledger::tell(const LostEvent& event) noexcept {
  if (!options_.on_loss || std::exchange(telling_, true)) return;
  try {
    options_.on_loss(event);
  } catch (const std::exception& error) {
    ++callback_failures_;
    options_.log(LogLevel::error, "postrider: the on_loss callback threw: " + what_of(error));
  } catch (...) {
    ++callback_failures_;
    options_.log(LogLevel::error,
                 "postrider: the on_loss callback threw something that is no std::exception");
  }
  telling_ = false;
}

bool Ledger::await_entered(Clock& clock, SteadyPoint deadline) {
  ++waiters_;
  bool in_time = true;
  {
    const MutexLock lock(mutex_);
    const auto done = [&](std::uint8_t epoch) POSTRIDER_REQUIRES(mutex_) {
      while (outstanding_[epoch] != 0 && in_time) {
        in_time = clock.steady_now() < deadline;
        if (in_time) clock.wait_until(changed_, mutex_, deadline);
      }
    };
    // What an earlier call did not wait for has the other number; only then can that be used again.
    const auto old = static_cast<std::uint8_t>(1 - epoch_);
    done(old);
    if (in_time) {
      const std::uint8_t mine = std::exchange(epoch_, old);
      done(mine);
    }
  }
  --waiters_;
  return in_time;
}

void Ledger::await_space(Clock& clock, SteadyPoint deadline, const std::function<bool()>& retry) {
  ++waiters_;
  {
    const MutexLock lock(mutex_);
    // A chunk freed before `waiters_` was raised is seen by this try, a later one wakes us.
    while (!retry() && clock.steady_now() < deadline) clock.wait_until(changed_, mutex_, deadline);
  }
  --waiters_;
}

void Ledger::wake_all() {
  const MutexLock lock(mutex_);
  changed_.notify_all();
}

void Ledger::fill(LoggerStats& stats) const noexcept {
  stats.delivered = delivered_;
  stats.replayed = replayed_;
  stats.adopted = adopted_;
  stats.spilled = spilled_;
  stats.dead = dead_;
  stats.quarantined = quarantined_;
  stats.retries = retries_;
  stats.callback_failures = callback_failures_;
  stats.logged += refused_;
  stats.in_rings += left_;
  for (std::size_t i = 0; i < lost_.size(); ++i) stats.lost[i] = lost_[i];
  stats.in_flight = outstanding();
}

}  // namespace logger
}  // namespace postrider
