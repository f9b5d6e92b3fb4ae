// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "queue.hpp"
#include "queue_sandbox.hpp"
#include "storage/queue_store.hpp"

namespace postrider::bench {

namespace {

constexpr int rounds = 3;
constexpr std::size_t finished = 500'000;
constexpr std::size_t window = 50'000;
constexpr std::size_t per_batch = 10'000;

/// Through the store alone, in large bites: only what it leaves behind matters.
void finish(QueueSandbox& sandbox, std::size_t rows) {
  EventQueue queue(sandbox.storage());
  QueueStore& store = sandbox.storage().queue_store();
  std::vector<Settlement> settlements;
  for (std::size_t done = 0; done < rows; done += settlements.size()) {
    settlements.clear();
    for (const QueuedEvent& event : queue.poll(per_batch)) settlements.push_back({.claim = event.claim});
    if (settlements.empty()) throw std::runtime_error("nothing to claim after " + std::to_string(done));
    (void)store.settle(settlements);
  }
}

/// The rate over `window` events after half a million were finished, with or without a transaction that began
/// before all of them.
double run(QueueSandbox& sandbox, bool held) {
  sandbox.clear();
  std::optional<Transaction> old;
  if (held) {
    old.emplace(sandbox.storage().begin());
    old->execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    old->execute("SELECT 1");  // takes the snapshot
  }
  sandbox.seed(finished);
  finish(sandbox, finished);
  sandbox.seed(window);
  DrainMetrics metrics;
  const double rate = sandbox.drain(window, metrics);
  sandbox.expect_all_logged(finished + window);
  if (old) old->rollback();
  return rate;
}

}  // namespace

void queue_held_xmin(Report& report, const std::string& line) {
  QueueSandbox sandbox(BackendKind::postgres, "bench_queue_xmin");
  const Medians rates = interleave(
      line, rounds, [&] { return run(sandbox, true); }, [&] { return run(sandbox, false); });
  report.print({line,
                rates.ours,
                "events/s",
                "without-it",
                rates.bare,
                Target::at_least(0.90),
                {{"rounds", double{rounds}}, {"spread", rates.spread}, {"finished", double{finished}}}});
}

}  // namespace postrider::bench
