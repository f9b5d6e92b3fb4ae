// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "bare_writer.hpp"
#include "drain_metrics.hpp"
#include "outbox.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t samples_per_round = 500;
constexpr double limit_p50 = 30;   // µs
constexpr double limit_p99 = 300;  // µs
// Between two samples: long enough for everybody to have gone to sleep.
constexpr auto pause = std::chrono::milliseconds{1};

using SteadyTime = std::chrono::steady_clock::time_point;

double micros(SteadyTime from, SteadyTime to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

/// The first thing after the database's COMMIT has returned is a hook that takes the time; hooks run in
/// order, so the hand-over to the workers comes after it and is measured in full.
std::vector<double> run_ours(Sandbox& sandbox) {
  sandbox.clear();
  DrainMetrics metrics;
  std::atomic<SteadyTime> entered{};
  Outbox outbox(sandbox.storage(), {.metrics = &metrics});
  outbox.on(EventType(bench_type), [&](const Event&) { entered = std::chrono::steady_clock::now(); });
  outbox.start();
  std::vector<double> latencies;
  for (std::size_t i = 1; i <= samples_per_round; ++i) {
    const Event event = Event::json(EventType(bench_type), payload_200(i));
    SteadyTime committed{};
    Transaction tx = sandbox.storage().begin();
    tx.after_commit([&] { committed = std::chrono::steady_clock::now(); });
    outbox.publish(tx, event);
    tx.commit();
    metrics.await_flushed(i);
    latencies.push_back(micros(committed, entered));
    std::this_thread::sleep_for(pause);
  }
  outbox.stop();
  sandbox.expect_all_done(samples_per_round);
  return latencies;
}

/// The least that waking another thread costs on this machine, now.
std::vector<double> run_condvar() {
  std::mutex mutex;
  std::condition_variable changed;
  bool full = false;
  SteadyTime woken{};
  std::size_t taken = 0;
  std::vector<double> latencies;
  std::thread waiter([&] {
    std::unique_lock lock(mutex);
    while (taken < samples_per_round) {
      changed.wait(lock, [&] { return full; });
      woken = std::chrono::steady_clock::now();
      full = false;
      ++taken;
      changed.notify_all();
    }
  });
  for (std::size_t i = 0; i < samples_per_round; ++i) {
    std::this_thread::sleep_for(pause * 3);
    const SteadyTime begin = std::chrono::steady_clock::now();
    {
      const std::lock_guard lock(mutex);
      full = true;
    }
    changed.notify_all();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !full; });
    latencies.push_back(micros(begin, woken));
  }
  waiter.join();
  return latencies;
}

}  // namespace

void outbox_hot_latency(Report& report, BackendKind kind, const std::string& line) {
  Sandbox sandbox(kind, "bench_latency");
  std::vector<double> p50, p99, bare_p50, bare_p99;
  (void)run_ours(sandbox);
  for (int round = 1; round <= default_rounds; ++round) {
    const std::vector<double> ours = run_ours(sandbox);
    const std::vector<double> bare = run_condvar();
    p50.push_back(percentile(ours, 0.50));
    p99.push_back(percentile(ours, 0.99));
    bare_p50.push_back(percentile(bare, 0.50));
    bare_p99.push_back(percentile(bare, 0.99));
    say(line + " round " + std::to_string(round) + ": p50 " + std::to_string(p50.back()) + " p99 " +
        std::to_string(p99.back()) + " against " + std::to_string(bare_p50.back()) + " and " +
        std::to_string(bare_p99.back()) + " us");
  }
  const auto print = [&](const char* suffix, const std::vector<double>& ours, const std::vector<double>& bare,
                         double limit) {
    const double value = median(ours);
    // The target is a time, not a ratio.
    report.print({line + suffix,
                  value,
                  "us",
                  "bare-condvar",
                  median(bare),
                  {},
                  {{"target", "<=" + std::to_string(static_cast<int>(limit)) + " us"},
                   {"met", value <= limit},
                   {"rounds", double{default_rounds}},
                   {"samples", double{default_rounds * samples_per_round}}}});
  };
  print(".p50", p50, bare_p50, limit_p50);
  print(".p99", p99, bare_p99, limit_p99);
}

}  // namespace postrider::bench
