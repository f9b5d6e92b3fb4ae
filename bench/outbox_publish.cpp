// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <barrier>
#include <mutex>
#include <thread>

#include "bare_writer.hpp"
#include "drain_metrics.hpp"
#include "outbox.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr double publish_seconds = 2.5;

/// Runs `publish` again and again on each of `threads` threads; returns calls per second. `publish` is given
/// its thread's number and the number of the call.
double rate_of(int threads, const std::function<void(int, std::size_t)>& publish) {
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> total = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  std::barrier start(threads + 1);
  std::vector<std::jthread> workers;
  for (int thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      start.arrive_and_wait();
      try {
        std::size_t calls = 0;
        for (; !stop; ++calls) publish(thread, calls);
        total += calls;
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    });
  }
  start.arrive_and_wait();
  const Stopwatch watch;
  std::this_thread::sleep_for(Seconds(publish_seconds));
  stop = true;
  workers.clear();
  if (failure) std::rethrow_exception(failure);
  return static_cast<double>(total) / watch.seconds();
}

double run_ours(Sandbox& sandbox, int threads, bool delivered) {
  sandbox.clear();
  DrainMetrics metrics;
  Outbox outbox(sandbox.storage(), {.hot_queue_capacity = 20'000, .metrics = &metrics});
  outbox.on(EventType(bench_type), [](const Event&) {});
  if (delivered) outbox.start();
  const double rate = rate_of(threads, [&](int, std::size_t call) {
    Transaction tx = sandbox.storage().begin();
    outbox.publish(tx, Event::json(EventType(bench_type), payload_200(call)));
    tx.commit();
  });
  outbox.stop();
  return rate;
}

/// The rows that have been inserted are finished meanwhile by one more connection, when asked for.
class BareCompleter {
 public:
  explicit BareCompleter(BareWriter& writer) : writer_(writer), thread_([this] { run(); }) {}
  ~BareCompleter() {
    stop_ = true;
    thread_.join();
  }
  BareCompleter(const BareCompleter&) = delete;
  BareCompleter& operator=(const BareCompleter&) = delete;

  void add(const EventId& id) {
    const std::lock_guard lock(mutex_);
    inserted_.push_back(id);
  }

 private:
  // As often as ours flushes: every 2 ms, at most 512 at a time.
  void run() {
    std::vector<EventId> batch;
    while (!stop_) {
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
      {
        const std::lock_guard lock(mutex_);
        const std::size_t take = std::min<std::size_t>(512, inserted_.size());
        batch.assign(inserted_.end() - static_cast<std::ptrdiff_t>(take), inserted_.end());
        inserted_.resize(inserted_.size() - take);
      }
      if (!batch.empty()) writer_.finish(batch);
    }
  }

  BareWriter& writer_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<EventId> inserted_;
  std::thread thread_;
};

double run_bare(Sandbox& sandbox, std::vector<std::unique_ptr<BareWriter>>& writers, BareWriter* finisher) {
  sandbox.clear();
  std::optional<BareCompleter> completer;
  if (finisher != nullptr) completer.emplace(*finisher);
  return rate_of(static_cast<int>(writers.size()), [&](int thread, std::size_t call) {
    const BareRow row{new_event_id(), payload_200(call)};
    writers[static_cast<std::size_t>(thread)]->insert({&row, 1});
    if (completer) completer->add(row.id);
  });
}

}  // namespace

void outbox_publish1(Report& report, int threads, bool delivered, const std::string& line) {
  // A few more connections than publishers: completer and poller need theirs.
  Sandbox sandbox(BackendKind::postgres, "bench_publish1", static_cast<std::size_t>(threads) + 4);
  const BareOptions options{.url = sandbox.url(), .table = sandbox.table()};
  std::vector<std::unique_ptr<BareWriter>> writers;
  for (int i = 0; i < threads; ++i) writers.push_back(bare_libpq(options));
  const std::unique_ptr<BareWriter> finisher = delivered ? bare_libpq(options) : nullptr;

  const Medians rates = interleave(
      line, default_rounds, [&] { return run_ours(sandbox, threads, delivered); },
      [&] { return run_bare(sandbox, writers, finisher.get()); });
  report.print({line,
                rates.ours,
                "events/s",
                "bare-libpq",
                rates.bare,
                delivered ? Target{} : Target::at_least(0.90),
                {{"rounds", double{default_rounds}}, {"spread", rates.spread}}});
}

}  // namespace postrider::bench
