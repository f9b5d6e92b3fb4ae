// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "queue.hpp"
#include "queue_sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t samples_per_round = 500;
// Between two samples: long enough for everybody to have gone to sleep, and for the next NOTIFY to be
// allowed.
constexpr auto pause = std::chrono::milliseconds{3};
constexpr double limit_same = 2;    // ms
constexpr double limit_other = 10;  // ms

using SteadyTime = std::chrono::steady_clock::time_point;

/// Publishes one event at a time on one node and waits until another one (or the same) has settled it. The
/// first hook after the database's COMMIT takes the time, so that all of the waking is measured.
std::vector<double> run(QueueSandbox& sandbox, Storage& publishing, bool same_node) {
  sandbox.clear();
  DrainMetrics metrics;
  EventQueue worker(sandbox.storage(), {.metrics = &metrics});
  EventQueue other(publishing);
  EventQueue& publisher = same_node ? worker : other;
  EventManager manager(worker);
  std::atomic<SteadyTime> entered{};
  manager.register_handler("bench", EventType(bench_type),
                           [&](const Event&) { entered = std::chrono::steady_clock::now(); });
  manager.start();
  std::vector<double> latencies;
  for (std::size_t i = 1; i <= samples_per_round; ++i) {
    const Event event = Event::json(EventType(bench_type), payload_200(i));
    SteadyTime committed{};
    Transaction tx = publisher.storage().begin();
    tx.after_commit([&] { committed = std::chrono::steady_clock::now(); });
    publisher.publish(tx, event);
    tx.commit();
    metrics.await_flushed(i);
    latencies.push_back(std::chrono::duration<double, std::milli>(entered.load() - committed).count());
    std::this_thread::sleep_for(pause);
  }
  manager.stop();
  sandbox.expect_all_logged(samples_per_round);
  return latencies;
}

struct Percentiles {
  std::vector<double> p50;
  std::vector<double> p99;
  void add(const std::vector<double>& latencies) {
    p50.push_back(percentile(latencies, 0.50));
    p99.push_back(percentile(latencies, 0.99));
  }
  [[nodiscard]] std::string last() const {
    return "p50 " + std::to_string(p50.back()) + " p99 " + std::to_string(p99.back()) + " ms";
  }
};

}  // namespace

void queue_latency(Report& report, const std::string& line) {
  QueueSandbox sandbox(BackendKind::postgres, "bench_queue_latency");
  // Another node: nothing is shared but the database.
  const auto publishing = open(sandbox.url(), {.schema = sandbox.schema()});
  Percentiles same;
  Percentiles other;
  for (int round = 1; round <= default_rounds; ++round) {
    same.add(run(sandbox, *publishing, true));
    other.add(run(sandbox, *publishing, false));
    say(line + " round " + std::to_string(round) + ": same node " + same.last() + ", other node " +
        other.last());
  }
  const auto print = [&](const char* suffix, const Percentiles& measured, double limit) {
    report.print({line + suffix,
                  median(measured.p99),
                  "ms",
                  "limit",
                  limit,
                  Target::at_most(1.0),
                  {{"p50", median(measured.p50)},
                   {"rounds", double{default_rounds}},
                   {"samples", double{default_rounds * samples_per_round}}}});
  };
  print(".same.p99", same, limit_same);
  print(".other.p99", other, limit_other);
}

}  // namespace postrider::bench
