// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"
#include "postrider/event_log_client.hpp"
#include "postrider/event_log_entry.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"

namespace postrider {

/// Why an event was lost. Every loss is counted under one of these, told to the `on_loss` callback, and
/// written of in the log: the first of a reason at once, then once a minute with the number since.
enum class LossReason : std::uint8_t {
  queue_full,               ///< `log()` found its ring full, and no spill folder
  retries_exhausted,        ///< all retries failed, and no spill folder
  retry_requeue_failed,     ///< its retry found the queue full, and no spill folder
  retry_executor_rejected,  ///< it failed during the shutdown, and no spill folder
  shutdown_in_progress,     ///< `log()` after `shutdown()`, or still queued at its end without a spill folder
  shutdown_pending_retry,   ///< it waited for a retry at the shutdown, and no spill folder
  spillover_queue_full,     ///< `log()` found its ring full: neither senders nor the disk keep up
  spillover_max_events,     ///< the spill files are full
  spillover_max_size,       ///< the spill files are full
  spillover_io_error,       ///< the disk refuses, and the ring is full or the shutdown's time over
  serialization,            ///< too large, or not readable
  rejected,                 ///< refused for good, and it could not be written to the dead letters
  corrupted,                ///< damaged on disk; what is left of it is in the quarantine
  spillover_removed,        ///< somebody removed its spill file, or cut it short
  invalid_entry,            ///< `log()` of an entry that is not `valid()`: the Event Log API would refuse it
  count_of_reasons,
};

/// "queue_full", …
[[nodiscard]] std::string_view to_string(LossReason reason) noexcept;

struct LostEvent {
  LossReason reason;
  std::uint64_t count;    ///< 1, but for events that are lost together and unseen
  std::string_view json;  ///< the event, when there is anything left of it
};

/// Told about each loss, on the thread that noticed. What it throws goes no further. It may call `log()`: the
/// loss of such an entry is counted but not told, unless it has been on disk in between, or another thread
/// logs it. It must not call `flush()` or `shutdown()`, which wait for it; and as they do, one that blocks
/// holds them up past their timeouts.
using EventLossCallback = std::function<void(const LostEvent&)>;

/// When the spill files are forced to the disk. Without it, a power cut takes what the kernel had not yet
/// written; `kill -9` never does.
enum class FsyncMode : std::uint8_t {
  none,
  interval,  ///< every `fsync_interval`
  group,     ///< before an event counts as spilled; events that come together share one
};

/// Where an event lies from `log()` until it is delivered or spilled.
enum class RingMode : std::uint8_t {
  memory,  ///< dies with the process
  mapped,  ///< a file in the spill folder: survives `kill -9`, not a power cut
};

/// Who gives way when there is no room left. An event meets up to three limits: the ring of its thread
/// (`ring_bytes`), the queue (`queue_capacity`: of the senders, and as much again before the disk), and the
/// spill files (`max_spillover_events`, `max_spillover_bytes`). Whatever the policy, what finds the queue of
/// the senders full, or most of its ring, goes to disk; without a spill folder it waits in the ring.
enum class FullPolicy : std::uint8_t {
  /// The event that finds no room is lost. Ring: `log()` returns false at once. Queue before the disk: those
  /// that come. Disk: those that are to be written; what is there stays.
  drop_newest,
  /// The oldest is lost instead, where that can be. Queue before the disk: its oldest event. Disk: the oldest
  /// file that is not being replayed; files are small then, a 32nd of the limits. Ring: events in it
  /// may be on their way already, so `log()` returns false as with `drop_newest`.
  drop_oldest,
  /// Waits for room for up to `block_timeout`, then as `drop_newest`. Disk, and queue before it: the threads
  /// of the logger wait, for the replay to make room; `log()` does not notice. Ring: only when that of the
  /// calling thread is full, because those threads wait or cannot keep up, `log()` itself waits, and returns
  /// false when the time is over.
  block,
};

/// Everything that can be set. The names and defaults of the seed's `eventlog.async.*`, and more. The
/// constructor checks each value and names the one it refuses.
struct LoggerOptions {
  bool enabled = true;                  ///< false: `log()` does nothing, and counts nothing
  std::size_t queue_capacity = 10'000;  ///< events that wait for a sender; 1 to 10,000,000
  int max_retries = 3;                  ///< after the first attempt; 0 to 100
  Duration base_retry_delay = std::chrono::milliseconds{1000};
  Duration max_retry_delay = std::chrono::milliseconds{30'000};
  /// Retries per request, on average; beyond it events go to disk at once. 0 to 10.
  double retry_budget = 0.5;
  int circuit_breaker_threshold = 5;  ///< failed requests, most of those of the last time; 1 to 1000
  Duration circuit_breaker_reset = std::chrono::milliseconds{30'000};
  std::size_t batch_size = 50;     ///< events per request; 1 to 10,000
  std::size_t sender_threads = 1;  ///< 1 to 64
  Duration max_batch_wait = std::chrono::milliseconds{100};

  /// The folder for spill files, made when it is not there. Empty: no spilling.
  std::string spillover_path{};
  std::uint64_t max_spillover_events = 10'000;              ///< in all files together
  std::uint64_t max_spillover_bytes = 50ULL * 1024 * 1024;  ///< of all files together
  FsyncMode fsync = FsyncMode::interval;
  Duration fsync_interval = std::chrono::milliseconds{1000};
  Duration replay_interval = std::chrono::milliseconds{10'000};
  std::size_t replay_batch_size = 500;  ///< 1 to 10,000
  std::uint64_t replay_rate = 0;        ///< events per second; 0 for as fast as they are taken

  RingMode ring = RingMode::memory;                ///< mapped needs a spill folder
  std::size_t ring_bytes = std::size_t{4} << 20U;  ///< for each thread that logs; 64 KiB to 1 GiB
  FullPolicy full_policy = FullPolicy::drop_newest;
  Duration block_timeout = std::chrono::milliseconds{1000};

  /// How long `shutdown` lets the senders work on what is queued, before the rest goes to disk.
  Duration shutdown_timeout = std::chrono::seconds{10};
  /// SIGTERM and SIGINT shut the logger down, with all others of the process that want it, and then do what
  /// they did before.
  bool handle_signals = false;

  /// For entries that do not say it themselves. The Event Log API refuses events without an application.
  std::string application_id{};
  std::string originating_system{};
  std::string user_id{};

  EventLossCallback on_loss{};
  /// Must outlive the logger; both are shared, not owned.
  Clock* clock = nullptr;              ///< default: Clock::system()
  MetricsExporter* metrics = nullptr;  ///< default: counts nothing
  LogCallback log = log_to_stderr();
};

/// The books. At any quiet moment
///
///     logged + recovered + adopted = delivered + pending() + dead + all_lost()
///
/// and what is pending when a process ends is what the next one has recovered.
struct LoggerStats {
  std::uint64_t logged = 0;     ///< calls of `log()`, refused ones too
  std::uint64_t recovered = 0;  ///< found in the folder at the start, of the process before
  std::uint64_t adopted = 0;    ///< read from spill files of another system or folder
  std::uint64_t delivered = 0;  ///< replayed ones too
  std::uint64_t replayed = 0;   ///< from disk
  std::uint64_t spilled = 0;    ///< to disk
  std::uint64_t dead = 0;       ///< refused for good, and kept in the dead letters
  std::array<std::uint64_t, static_cast<std::size_t>(LossReason::count_of_reasons)> lost{};

  std::uint64_t in_rings = 0;     ///< logged, and not yet seen by the drain
  std::uint64_t in_flight = 0;    ///< queued, being sent, waiting for a retry or for the disk
  std::uint64_t queue_depth = 0;  ///< of these, those that wait for a sender
  std::uint64_t on_disk = 0;

  std::uint64_t backlog_bytes = 0;  ///< of the spill files
  Duration oldest_age{};            ///< of what is on disk: since the oldest of it was spilled
  std::uint64_t quarantined = 0;    ///< damaged lines that were set aside
  std::uint64_t retries = 0;        ///< events sent again
  std::uint64_t callback_failures = 0;
  std::uint64_t rings_in_plain_memory = 0;  ///< that should have been mapped
  bool circuit_open = false;

  [[nodiscard]] std::uint64_t pending() const noexcept { return in_rings + in_flight + on_disk; }
  [[nodiscard]] std::uint64_t lost_for(LossReason reason) const noexcept {
    return lost[static_cast<std::size_t>(reason)];
  }
  [[nodiscard]] std::uint64_t all_lost() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t one : lost) sum += one;
    return sum;
  }
};

/// Logs business events: `log()` copies into a ring of the calling thread, a drain thread collects, sender
/// threads post batches; what cannot be delivered goes to disk and comes back by itself. Loss is never
/// silent: see LoggerStats. Thread-safe.
class AsyncEventLogger {
 public:
  class Builder;
  [[nodiscard]] static Builder builder();

  /// Opens the spill folder, takes over what the process before has left, and starts. Throws Error when an
  /// option is out of bounds or the folder cannot be used (conflict: another logger has it).
  AsyncEventLogger(std::shared_ptr<EventLogClient> client, LoggerOptions options = {});
  /// Shuts down.
  ~AsyncEventLogger();
  AsyncEventLogger(const AsyncEventLogger&) = delete;
  AsyncEventLogger& operator=(const AsyncEventLogger&) = delete;

  /// Takes the event over. Tens of nanoseconds; allocates nothing (but for a thread's first call) and never
  /// waits, unless the policy is `block`. False when it was refused: that is counted, and told to `on_loss`.
  bool log(const EventLogEntry& entry) noexcept;
  /// Returns how many were taken.
  std::size_t log(std::span<const EventLogEntry> entries) noexcept;
  std::size_t log(std::initializer_list<EventLogEntry> entries) noexcept {
    return log(std::span(entries.begin(), entries.size()));
  }

  /// Waits until everything logged before is delivered, on disk, dead or counted as lost: nothing of it is in
  /// memory alone. False when `timeout` passed before.
  [[nodiscard]] bool flush(Duration timeout = std::chrono::seconds{10});

  /// Takes no more events; delivers what it can within the timeout, writes the rest to disk, ends all
  /// threads. What can be neither delivered nor written is counted as lost (with a mapped ring it stays
  /// there). Once; later calls wait for the first.
  void shutdown();

  /// One cycle of the replay now, on its own thread; does not wait for it.
  void replay_soon();

  [[nodiscard]] LoggerStats stats() const;
  [[nodiscard]] const LoggerOptions& options() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// The same options, one call each.
class AsyncEventLogger::Builder {
 public:
  Builder& client(std::shared_ptr<EventLogClient> client) {
    client_ = std::move(client);
    return *this;
  }
  Builder& options(LoggerOptions options) {
    options_ = std::move(options);
    return *this;
  }
  Builder& enabled(bool on) { return with(&LoggerOptions::enabled, on); }
  Builder& application_id(std::string id) { return with(&LoggerOptions::application_id, std::move(id)); }
  Builder& originating_system(std::string system) {
    return with(&LoggerOptions::originating_system, std::move(system));
  }
  Builder& user_id(std::string id) { return with(&LoggerOptions::user_id, std::move(id)); }
  Builder& queue_capacity(std::size_t events) { return with(&LoggerOptions::queue_capacity, events); }
  Builder& max_retries(int retries) { return with(&LoggerOptions::max_retries, retries); }
  Builder& base_retry_delay(Duration delay) { return with(&LoggerOptions::base_retry_delay, delay); }
  Builder& max_retry_delay(Duration delay) { return with(&LoggerOptions::max_retry_delay, delay); }
  Builder& circuit_breaker_threshold(int count) {
    return with(&LoggerOptions::circuit_breaker_threshold, count);
  }
  Builder& circuit_breaker_reset(Duration time) { return with(&LoggerOptions::circuit_breaker_reset, time); }
  Builder& batch_size(std::size_t events) { return with(&LoggerOptions::batch_size, events); }
  Builder& sender_threads(std::size_t threads) { return with(&LoggerOptions::sender_threads, threads); }
  Builder& max_batch_wait(Duration time) { return with(&LoggerOptions::max_batch_wait, time); }
  Builder& spillover_path(std::string path) { return with(&LoggerOptions::spillover_path, std::move(path)); }
  Builder& max_spillover_events(std::uint64_t events) {
    return with(&LoggerOptions::max_spillover_events, events);
  }
  Builder& max_spillover_bytes(std::uint64_t bytes) {
    return with(&LoggerOptions::max_spillover_bytes, bytes);
  }
  Builder& replay_interval(Duration time) { return with(&LoggerOptions::replay_interval, time); }
  Builder& replay_batch_size(std::size_t events) { return with(&LoggerOptions::replay_batch_size, events); }
  Builder& replay_rate(std::uint64_t events_per_second) {
    return with(&LoggerOptions::replay_rate, events_per_second);
  }
  Builder& retry_budget(double retries_per_request) {
    return with(&LoggerOptions::retry_budget, retries_per_request);
  }
  Builder& fsync(FsyncMode mode) { return with(&LoggerOptions::fsync, mode); }
  Builder& fsync_interval(Duration time) { return with(&LoggerOptions::fsync_interval, time); }
  Builder& ring_bytes(std::size_t bytes) { return with(&LoggerOptions::ring_bytes, bytes); }
  Builder& block_timeout(Duration time) { return with(&LoggerOptions::block_timeout, time); }
  Builder& shutdown_timeout(Duration time) { return with(&LoggerOptions::shutdown_timeout, time); }
  Builder& handle_signals(bool on) { return with(&LoggerOptions::handle_signals, on); }
  Builder& ring(RingMode mode) { return with(&LoggerOptions::ring, mode); }
  Builder& full_policy(FullPolicy policy) { return with(&LoggerOptions::full_policy, policy); }
  Builder& on_loss(EventLossCallback callback) { return with(&LoggerOptions::on_loss, std::move(callback)); }
  /// Both must outlive the logger.
  Builder& clock(Clock& clock) { return with(&LoggerOptions::clock, &clock); }
  Builder& metrics(MetricsExporter& metrics) { return with(&LoggerOptions::metrics, &metrics); }
  Builder& log(LogCallback callback) { return with(&LoggerOptions::log, std::move(callback)); }

  /// Throws like the constructor.
  [[nodiscard]] std::unique_ptr<AsyncEventLogger> build() {
    return std::make_unique<AsyncEventLogger>(std::move(client_), std::move(options_));
  }

 private:
  template <class T, class V>
  Builder& with(T LoggerOptions::*member, V value) {
    options_.*member = std::move(value);
    return *this;
  }
  std::shared_ptr<EventLogClient> client_;
  LoggerOptions options_;
};

inline AsyncEventLogger::Builder AsyncEventLogger::builder() {
  return {};
}

}  // namespace postrider
