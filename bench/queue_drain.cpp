// SPDX-License-Identifier: Apache-2.0
#include "queue.hpp"
#include "queue_sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t backlog = 100'000;
constexpr double target = 0.60;

struct Bare {
  std::string name;
  std::unique_ptr<BareQueue> queue;
};

Bare bare_of(BackendKind kind, const BareQueueOptions& options) {
  switch (kind) {
    case BackendKind::sqlite:
      return {"bare-sqlite3", bare_queue_sqlite(options)};
    case BackendKind::postgres:
      return {"bare-libpq", bare_queue_libpq(options)};
    case BackendKind::mariadb:
      return {"bare-libmariadb", bare_queue_libmariadb(options)};
  }
  throw std::logic_error("no such database");
}

double run_bare(QueueSandbox& sandbox, BareQueue& bare, std::size_t rows) {
  sandbox.clear();
  sandbox.seed(rows);
  const Stopwatch watch;
  std::size_t moved = 0;
  while (moved < rows) moved += bare.move_batch();
  const double rate = static_cast<double>(rows) / watch.seconds();
  sandbox.expect_all_logged(rows);
  return rate;
}

double run_ours(QueueSandbox& sandbox, DrainMetrics& metrics, std::size_t rows) {
  sandbox.clear();
  sandbox.seed(rows);
  const double rate = sandbox.drain(rows, metrics);
  sandbox.expect_all_logged(rows);
  return rate;
}

}  // namespace

void queue_drain(Report& report, BackendKind kind, const std::string& line) {
  QueueSandbox sandbox(kind, "bench_drain");
  const Bare bare = bare_of(kind, sandbox.bare());
  {
    DrainMetrics ignored;  // warm: files grown, statements prepared
    run_ours(sandbox, ignored, backlog / 10);
    run_bare(sandbox, *bare.queue, backlog / 10);
  }
  std::vector<double> claim_micros;
  std::vector<double> settle_micros;
  std::vector<double> per_settle;
  const Medians rates = interleave(
      line, default_rounds,
      [&] {
        DrainMetrics metrics;
        const double rate = run_ours(sandbox, metrics, backlog);
        claim_micros.push_back(metrics.claim_micros());
        settle_micros.push_back(metrics.flush_micros());
        per_settle.push_back(metrics.events_per_flush());
        return rate;
      },
      [&] { return run_bare(sandbox, *bare.queue, backlog); });
  report.print({line,
                rates.ours,
                "events/s",
                bare.name,
                rates.bare,
                Target::at_least(target),
                {{"rounds", double{default_rounds}},
                 {"spread", rates.spread},
                 {"claim_us_per_event", median(claim_micros)},
                 {"settle_us_per_event", median(settle_micros)},
                 {"events_per_settle", median(per_settle)}}});
}

}  // namespace postrider::bench
