// SPDX-License-Identifier: Apache-2.0
#include "postrider/async_logger.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/failpoint.hpp"
#include "core/periodic_task.hpp"
#include "core/wording.hpp"
#include "logger/asymmetric_fence.hpp"
#include "logger/drain.hpp"
#include "logger/fork_count.hpp"
#include "logger/options.hpp"
#include "logger/replayer.hpp"
#include "logger/signal_hook.hpp"
#include "postrider/error.hpp"

namespace postrider {

using namespace logger;

namespace {

SpillLimits limits_of(const LoggerOptions& options) {
  constexpr std::uint64_t largest = 8 * 1024 * 1024;
  constexpr std::uint64_t no_limit = ~std::uint64_t{0};
  // Each file costs a little; but where the oldest is given up for a new event, it should not have many.
  const bool gives_up = options.full_policy == FullPolicy::drop_oldest;
  const std::uint64_t smallest = gives_up ? 4 * 1024 : 64 * 1024;
  const std::uint64_t parts = gives_up ? 32 : 8;
  return {.max_events = options.max_spillover_events,
          .max_bytes = options.max_spillover_bytes,
          .segment_bytes = std::clamp(options.max_spillover_bytes / parts, smallest, largest),
          .segment_events =
              gives_up ? std::max<std::uint64_t>(options.max_spillover_events / parts, 1) : no_limit,
          .durable = options.fsync != FsyncMode::none};
}

constexpr Duration ring_watch_interval = std::chrono::seconds{1};
constexpr Duration cancel_again_after = std::chrono::milliseconds{50};

std::shared_ptr<EventLogClient> checked_client(std::shared_ptr<EventLogClient> client) {
  if (client) return client;
  throw Error(ErrorCode::invalid_argument, "cannot make an AsyncEventLogger", "there is no client",
              "give it one, for example an HttpEventLogClient");
}

}  // namespace

/// In the order in which they are made; the threads end in the opposite one, see `shutdown`.
struct AsyncEventLogger::Parts {
  Parts(std::shared_ptr<EventLogClient> the_client, LoggerOptions the_options)
      : client(checked_client(std::move(the_client))),
        options(checked(std::move(the_options))),
        ledger(options, {options.application_id, options.originating_system, options.user_id}),
        queue(options.queue_capacity, options.batch_size, options.max_batch_wait, *options.clock),
        gate({.threshold = options.circuit_breaker_threshold,
              .window = std::max<Duration>(options.circuit_breaker_reset, std::chrono::seconds{10}),
              .reset = options.circuit_breaker_reset},
             options.retry_budget, *options.clock) {
    failpoint("logger.start.checked");
    if (!options.spillover_path.empty()) {
      folder = open_spill_folder(options.spillover_path);
      failpoint("logger.start.folder");
      store.emplace(*folder, limits_of(options), options.log, *options.clock);
      if (store->recovered() > 0) {
        options.log(LogLevel::info, "postrider: " + counted(store->recovered(), "event") +
                                        " of the last process were found in " + options.spillover_path);
      }
      failpoint("logger.start.recovered");
      writer.emplace(*store, ledger, options);
    }
    lanes = LaneSet::make({.mapped = options.ring == RingMode::mapped,
                           .folder = options.spillover_path,
                           .ring_bytes = options.ring_bytes,
                           .log = options.log,
                           .quarantine = [this](std::string_view line) { set_aside(line); }});
    ledger.count_unseen(lanes->damaged(), LossReason::corrupted);
    failpoint("logger.start.rings");
    outlet.emplace(*client, options, ledger, queue, gate, store ? &*store : nullptr,
                   writer ? &*writer : nullptr);
    drain.emplace(*lanes, *outlet);
    if (store) replayer.emplace(*outlet);
    queue.on_room([this] { drain->room_made(); });
    if (writer) {
      writer->on_room([this] { drain->room_made(); });
      writer->on_full([this] { replayer->wake(); });
      writer->way_back([this](std::span<const EventRef> events) {
        return gate.is_closed() && !outlet->stopping ? queue.push(events) : 0;
      });
    }
  }

  ~Parts() { lanes->unlock_files(); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void start() {
    if (writer) writer->start();  // the first: all others may come to it with an event
    failpoint("logger.start.writer");
    std::random_device random;
    for (std::size_t i = 0; i < options.sender_threads; ++i) {
      senders.emplace_back([this, seed = random()] {
        Sender(*outlet, seed).run();
        const MutexLock lock(mutex);
        ++senders_done;
        sender_done.notify_all();
      });
    }
    failpoint("logger.start.senders");
    drain->start();
    failpoint("logger.start.drain");
    if (replayer) replayer->start();
    failpoint("logger.start.replay");
    if (options.metrics != &MetricsExporter::none()) gauges.start();
    news.start();
    if (options.ring == RingMode::mapped) ring_watch.start();
  }

  [[nodiscard]] bool push(Lane& lane, const EventLogEntry& entry, std::int64_t stamp) noexcept {
    lane.enter();
    AsymmetricFence::light();
    // Either this sees that the logger is closed, or the closing thread sees that we are inside, and waits.
    const bool pushed =
        !closed.load(std::memory_order_relaxed) && lane.push(entry.packed(), stamp, Ledger::telling());
    lane.leave();
    return pushed;
  }
  [[nodiscard]] std::int64_t stamp(Lane* lane) const noexcept {
    if (counts_time && lane != nullptr) return lane->time().now();
    return options.clock->now().time_since_epoch().count();
  }
  /// This is a child of the process that made the logger.
  [[nodiscard]] bool forked() const noexcept { return ForkCount::now() != birth; }
  bool log_slowly(Lane* lane, const EventLogEntry& entry, std::int64_t stamp) noexcept;
  /// Something damaged was found in a ring; only a folder can have rings to find.
  void set_aside(std::string_view line) {
    if (store->quarantine().append(line, options.fsync != FsyncMode::none)) ledger.quarantined(1);
  }
  void look_after_rings() {
    const bool gone = lanes->files_are_gone();
    const bool plain = lanes->fallbacks() > 0;
    if ((gone || plain) && store) store->look_after_files();  // the folder itself may be gone
    if (gone) lanes->replace_gone_files();
    if (plain) lanes->leave_plain_memory();
  }
  void tell_held_back(bool all) {
    ledger.tell_held_back(all);
    outlet->refusals.tell_held_back(all);
    if (store) store->news().tell_held_back(all);
  }
  void shutdown() noexcept;
  void end_senders(SteadyPoint deadline);
  void divert(const std::vector<EventRef>& events, LossReason reason) { outlet->divert(events, reason); }
  [[nodiscard]] LoggerStats stats() const;

  const std::uint32_t birth = (ForkCount::watch(), ForkCount::now());
  std::shared_ptr<EventLogClient> client;
  const LoggerOptions options;
  const bool counts_time = options.clock == &Clock::system() && ProcessorTime::is_even();
  std::unique_ptr<SpillFolder> folder;
  std::optional<SpillStore> store;
  Ledger ledger;
  SendQueue queue;
  BreakerGate gate;
  std::optional<SpillWriter> writer;
  std::shared_ptr<LaneSet> lanes;
  std::optional<Outlet> outlet;
  std::optional<Drain> drain;
  std::optional<Replayer> replayer;
  std::vector<std::thread> senders;
  std::atomic<bool> closed{false};
  std::once_flag ended;

  Mutex mutex;
  CondVar sender_done;
  std::size_t senders_done POSTRIDER_GUARDED_BY(mutex) = 0;
  Mutex flush_mutex;
  CondVar flushed;
  bool flushing POSTRIDER_GUARDED_BY(flush_mutex) = false;  // one at a time
  PeriodicTask gauges{options.replay_interval, *options.clock,
                      [this] { options.metrics->record_logger(stats()); }};
  // What was held back is told soon after its time, also when nothing happens any more.
  PeriodicTask news{LimitedNews::apart / 6, *options.clock, [this] { tell_held_back(false); }};
  PeriodicTask ring_watch{ring_watch_interval, *options.clock, [this] { look_after_rings(); }};
  std::unique_ptr<SignalHook> signals;
};

AsyncEventLogger::AsyncEventLogger(std::shared_ptr<EventLogClient> client, LoggerOptions options)
    : parts_(std::make_unique<Parts>(std::move(client), std::move(options))) {
  parts_->start();
  if (parts_->options.handle_signals) {
    parts_->signals = std::make_unique<SignalHook>([this] { shutdown(); });
    failpoint("logger.start.signals");
  }
}

AsyncEventLogger::~AsyncEventLogger() {
  if (parts_->forked()) {
    // Its threads are the parent's, and its locks may be in any state: nothing of it can be used or ended
    // here.
    (void)parts_.release();
    return;
  }
  parts_->signals.reset();
  shutdown();
}

bool AsyncEventLogger::log(const EventLogEntry& entry) noexcept {
  Parts& parts = *parts_;
  if (!parts.options.enabled || parts.forked()) return false;
  if (!entry.valid()) [[unlikely]] {
    parts.ledger.refused(entry, LossReason::invalid_entry);
    return false;
  }
  Lane* const lane = parts.lanes->mine();
  const std::int64_t stamp = parts.stamp(lane);
  if (lane == nullptr || !parts.push(*lane, entry, stamp)) [[unlikely]]
    return parts.log_slowly(lane, entry, stamp);
  AsymmetricFence::light();
  parts.drain->pushed(*lane);
  return true;
}

std::size_t AsyncEventLogger::log(std::span<const EventLogEntry> entries) noexcept {
  std::size_t taken = 0;
  for (const EventLogEntry& entry : entries) taken += log(entry) ? 1 : 0;
  return taken;
}

bool AsyncEventLogger::Parts::log_slowly(Lane* lane, const EventLogEntry& entry,
                                         std::int64_t stamp) noexcept {
  LossReason reason = LossReason::queue_full;
  if (writer) reason = writer->failing() ? LossReason::spillover_io_error : LossReason::spillover_queue_full;
  Lane* taker = lane;
  const auto try_push = [&] {
    if (lane != nullptr) return push(*lane, entry, stamp);
    // A thread that is ending has no lane any more, and one of very many has none: they share one.
    return lanes->use_shared([&](Lane& shared) {
      taker = &shared;
      return push(shared, entry, stamp);
    });
  };
  bool pushed = lane == nullptr && !closed && try_push();
  if (pushed || closed) {
    reason = LossReason::shutdown_in_progress;
  } else if (taker != nullptr && entry.packed().size() > taker->max_packed()) {
    reason = LossReason::serialization;
  } else if (taker != nullptr) {
    drain->hurry();
    if (options.full_policy == FullPolicy::block) {
      try {
        ledger.await_space(*options.clock, options.clock->steady_now() + options.block_timeout, [&] {
          pushed = try_push();
          return pushed || closed;
        });
      } catch (...) {
        reason = LossReason::queue_full;  // out of memory
      }
      if (closed) reason = LossReason::shutdown_in_progress;
    }
  }
  if (pushed) {
    AsymmetricFence::light();
    drain->pushed(*taker);
    return true;
  }
  ledger.refused(entry, reason);
  return false;
}

bool AsyncEventLogger::flush(Duration timeout) {
  Parts& parts = *parts_;
  if (parts.forked()) return false;
  Clock& clock = *parts.options.clock;
  constexpr Duration longest = std::chrono::hours{24 * 365 * 100};  // that a clock can be asked for
  const SteadyPoint deadline = clock.steady_now() + std::min(timeout, longest);
  {
    const MutexLock lock(parts.flush_mutex);
    while (parts.flushing) {
      if (clock.steady_now() >= deadline) return false;
      clock.wait_until(parts.flushed, parts.flush_mutex, deadline);
    }
    parts.flushing = true;
  }
  parts.queue.hurry(true);
  bool done = parts.drain->pass(deadline) && parts.ledger.await_entered(clock, deadline);
  parts.queue.hurry(false);
  if (done && parts.writer) done = parts.writer->sync(deadline);
  {
    const MutexLock lock(parts.flush_mutex);
    parts.flushing = false;
  }
  parts.flushed.notify_all();
  return done;
}

void AsyncEventLogger::replay_soon() {
  if (parts_->replayer && !parts_->forked()) parts_->replayer->wake();
}

void AsyncEventLogger::shutdown() {
  if (parts_->forked()) return;
  if (Ledger::telling()) {
    // This thread is one of those that a shutdown waits for, or holds up one of them.
    parts_->options.log(LogLevel::error,
                        "postrider: shutdown() was called by on_loss, and does nothing there");
    return;
  }
  std::call_once(parts_->ended, [this] { parts_->shutdown(); });
}

void AsyncEventLogger::Parts::shutdown() noexcept {
  const SteadyPoint deadline = options.clock->steady_now() + options.shutdown_timeout;
  closed = true;
  AsymmetricFence::heavy();
  ledger.wake_all();
  // Nobody stays inside for longer than a copy takes.
  lanes->for_each([](const Lane& lane) {
    while (lane.busy()) std::this_thread::yield();
  });
  failpoint("logger.stop.closed");
  outlet->stopping = true;
  if (writer) writer->hurry();
  if (replayer) replayer->ask_to_stop();
  divert(queue.close_retries(), LossReason::shutdown_pending_retry);
  failpoint("logger.stop.retries");
  queue.hurry(true);
  drain->stop(deadline);
  failpoint("logger.stop.drain");
  queue.close();
  end_senders(deadline);
  failpoint("logger.stop.senders");
  if (replayer) replayer->stop();
  failpoint("logger.stop.replay");
  if (writer) {
    writer->stop();                   // the last: until now somebody may have come with an event
    writer->take_all(queue.drain());  // what it gave back at the very moment of the shutdown
  }
  failpoint("logger.stop.writer");
  gauges.stop();
  news.stop();
  ring_watch.stop();
  tell_held_back(true);
  const LoggerStats books = stats();
  options.metrics->record_logger(books);
  const LogLevel level = books.all_lost() > 0 ? LogLevel::warning : LogLevel::info;
  options.log(level,
              "postrider: the logger has ended: " + std::to_string(books.logged) + " logged, " +
                  (books.recovered > 0 ? std::to_string(books.recovered) + " found, " : "") +
                  (books.adopted > 0 ? std::to_string(books.adopted) + " of others taken over, " : "") +
                  std::to_string(books.delivered) + " delivered, " + std::to_string(books.dead) + " dead, " +
                  std::to_string(books.all_lost()) + " lost, " + std::to_string(books.pending()) +
                  " kept for the next start");
}

void AsyncEventLogger::Parts::end_senders(SteadyPoint deadline) {
  bool in_time = true;
  {
    const MutexLock lock(mutex);
    while (senders_done < senders.size() && in_time) {
      in_time = options.clock->steady_now() < deadline;
      if (in_time) options.clock->wait_until(sender_done, mutex, deadline);
    }
  }
  if (!in_time) divert(queue.drain(), LossReason::shutdown_in_progress);
  gate.close();
  if (!in_time) {
    // One may have been on its way to the client when it was told.
    const MutexLock lock(mutex);
    while (senders_done < senders.size()) {
      client->cancel();
      options.clock->wait_until(sender_done, mutex, options.clock->steady_now() + cancel_again_after);
    }
  }
  for (std::thread& sender : senders) sender.join();
  divert(queue.drain(), LossReason::shutdown_in_progress);
}

LoggerStats AsyncEventLogger::Parts::stats() const {
  LoggerStats stats;
  lanes->for_each([&](const Lane& lane) {
    stats.logged += lane.pushed();
    stats.in_rings += lane.unseen();
  });
  ledger.fill(stats);
  stats.recovered = lanes->recovered() + lanes->damaged();
  stats.queue_depth = queue.depth();
  stats.rings_in_plain_memory = lanes->fallbacks();
  stats.circuit_open = gate.is_open();
  if (store) {
    stats.recovered += store->recovered();
    stats.on_disk = store->events();
    stats.backlog_bytes = store->bytes();
    stats.quarantined += store->torn_tails();
    if (stats.on_disk > 0) {
      const auto age = options.clock->steady_now() - writer->oldest_since(store->cursor());
      stats.oldest_age = std::chrono::duration_cast<Duration>(age);
    }
  }
  return stats;
}

LoggerStats AsyncEventLogger::stats() const {
  return parts_->stats();
}

const LoggerOptions& AsyncEventLogger::options() const noexcept {
  return parts_->options;
}

}  // namespace postrider
