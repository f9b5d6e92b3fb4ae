// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>

#include "bare_writer.hpp"
#include "drain_metrics.hpp"
#include "outbox.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t backlog = 1'000'000;
constexpr double limit_mb = 100;

}  // namespace

int outbox_memory_child(const std::string& url, const std::string& schema, std::size_t rows) {
  const auto storage = open(url, {.schema = schema});
  DrainMetrics metrics;
  Outbox outbox(*storage, {.poller_batch_size = 500, .metrics = &metrics});
  outbox.on(EventType(bench_type), [](const Event&) {});
  const Stopwatch watch;
  outbox.start();
  metrics.await_flushed(rows);
  const double seconds = watch.seconds();
  outbox.stop();
  std::cout << peak_resident_mb() << " " << static_cast<double>(rows) / seconds << std::endl;
  return 0;
}

void outbox_memory(Report& report, const std::string& line) {
  Sandbox sandbox(BackendKind::sqlite, "bench_memory");
  const Stopwatch seeding;
  sandbox.seed(backlog);
  say(line + ": " + std::to_string(backlog) + " rows inserted in " + std::to_string(seeding.seconds()) +
      " s");
  // A process of its own, so that the peak is the drain's alone.
  const std::string output = output_of_child(
      {"postrider-bench", "--memory-child", sandbox.url(), sandbox.schema(), std::to_string(backlog)});
  sandbox.expect_all_done(backlog);
  std::size_t rest = 0;
  const double peak = std::stod(output, &rest);
  const double rate = std::stod(output.substr(rest));
  report.print({line,
                peak,
                "MB",
                "limit",
                limit_mb,
                Target::at_most(1.0),
                {{"rows", double{backlog}}, {"drain_rate", rate}}});
}

}  // namespace postrider::bench
