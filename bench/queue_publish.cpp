// SPDX-License-Identifier: Apache-2.0
#include "queue.hpp"
#include "queue_sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t per_transaction = 100;
constexpr double publish_seconds = 2.5;

/// Calls `publish` with the number of its first event until the time is over; returns events per second.
double rate_of(const std::function<void(std::size_t)>& publish) {
  const Stopwatch watch;
  std::size_t published = 0;
  for (; watch.seconds() < publish_seconds; published += per_transaction) publish(published);
  return static_cast<double>(published) / watch.seconds();
}

double run_ours(QueueSandbox& sandbox) {
  sandbox.clear();
  EventQueue queue(sandbox.storage());
  std::vector<Event> events;
  return rate_of([&](std::size_t first) {
    events.clear();
    for (std::size_t i = 0; i < per_transaction; ++i) {
      events.push_back(Event::json(EventType(bench_type), payload_200(first + i)));
    }
    Transaction tx = sandbox.storage().begin();
    queue.publish(tx, std::span<const Event>(events));
    tx.commit();
  });
}

double run_bare(QueueSandbox& sandbox, BarePublisher& publisher) {
  sandbox.clear();
  std::vector<BareRow> rows;
  return rate_of([&](std::size_t first) {
    rows.clear();
    for (std::size_t i = 0; i < per_transaction; ++i) {
      rows.push_back({new_event_id(), payload_200(first + i)});
    }
    publisher.publish(rows);
  });
}

}  // namespace

void queue_publish(Report& report, const std::string& line) {
  QueueSandbox sandbox(BackendKind::postgres, "bench_queue_publish");
  const std::unique_ptr<BarePublisher> publisher = bare_publisher_libpq(sandbox.bare());
  const Medians rates = interleave(
      line, default_rounds, [&] { return run_ours(sandbox); }, [&] { return run_bare(sandbox, *publisher); });
  report.print({line,
                rates.ours,
                "events/s",
                "bare-libpq",
                rates.bare,
                Target::at_least(0.85),
                {{"rounds", double{default_rounds}}, {"spread", rates.spread}}});
}

}  // namespace postrider::bench
