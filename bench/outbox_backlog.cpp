// SPDX-License-Identifier: Apache-2.0
#include "bare_writer.hpp"
#include "drain_metrics.hpp"
#include "outbox.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t small_backlog = 10'000;
constexpr std::size_t large_backlog = 200'000;
// Much more than what is claimed ahead (the cold queue): the last of a small backlog is finished without any
// claim beside it, which would make a short look at a large one seem slow.
constexpr std::size_t window = 50'000;
constexpr int small_drains = 3;

/// What somebody sets who expects backlogs: larger bites.
OutboxOptions drain_options(DrainMetrics& metrics) {
  return {.poller_batch_size = 500, .metrics = &metrics};
}

/// Starts an outbox on what is pending; returns the rate at which the first `rows` became DONE.
double drain(Storage& storage, std::size_t rows, DrainMetrics& metrics) {
  Outbox outbox(storage, drain_options(metrics));
  outbox.on(EventType(bench_type), [](const Event&) {});
  const Stopwatch watch;
  outbox.start();
  metrics.await_flushed(rows);
  const double rate = static_cast<double>(rows) / watch.seconds();
  outbox.stop();
  return rate;
}

}  // namespace

void outbox_backlog(Report& report, BackendKind kind, const std::string& line) {
  Sandbox small(kind, "bench_backlog_small");
  Sandbox large(kind, "bench_backlog_large");
  const Medians rates = interleave(
      line, default_rounds,
      [&] {
        large.seed(large_backlog - static_cast<std::size_t>(large.count("status = 0")));
        DrainMetrics metrics;
        return drain(large.storage(), window, metrics);
      },
      [&] {
        double seconds = 0;
        for (int i = 0; i < small_drains; ++i) {
          small.seed(small_backlog);
          DrainMetrics metrics;
          seconds += small_backlog / drain(small.storage(), small_backlog, metrics);
        }
        return small_drains * small_backlog / seconds;
      });
  // Then all that is left, once: nothing may be forgotten, and memory must not depend on it.
  const auto left = static_cast<std::size_t>(large.count("status = 0"));
  reset_peak_resident();
  DrainMetrics metrics;
  const double whole = drain(large.storage(), left, metrics);
  if (large.count("status <> 1") != 0) throw std::runtime_error("the backlog was not drained completely");
  report.print({line,
                rates.ours,
                "events/s",
                "rate-at-10k",
                rates.bare,
                Target::at_least(0.90),
                {{"rounds", double{default_rounds}},
                 {"spread", rates.spread},
                 {"whole_drain", whole},
                 {"whole_drain_events", static_cast<double>(left)},
                 {"claim_us_per_event", metrics.claim_micros()},
                 {"flush_us_per_event", metrics.flush_micros()},
                 {"peak_resident_mb", peak_resident_mb()}}});
}

}  // namespace postrider::bench
