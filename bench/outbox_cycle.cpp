// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <mutex>
#include <thread>

#include "bare_writer.hpp"
#include "drain_metrics.hpp"
#include "outbox.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t per_transaction = 100;
constexpr std::size_t per_finish = 512;  // the completer's default
constexpr double publish_seconds = 3.0;

struct OursRound {
  double rate = 0;
  double dropped = 0;  // part of the events that went the cold way
  double per_flush = 0;
};

/// Publishes for `seconds`, waits until everything is DONE, and counts both times.
OursRound run_ours(Sandbox& sandbox, std::size_t hot_queue_capacity, double seconds) {
  sandbox.clear();
  DrainMetrics metrics;
  Outbox outbox(sandbox.storage(), {.hot_queue_capacity = hot_queue_capacity, .metrics = &metrics});
  outbox.on(EventType(bench_type), [](const Event&) {});
  outbox.start();

  const Stopwatch watch;
  std::size_t published = 0;
  std::vector<Event> events;
  while (watch.seconds() < seconds) {
    events.clear();
    for (std::size_t i = 0; i < per_transaction; ++i) {
      events.push_back(Event::json(EventType(bench_type), payload_200(published + i)));
    }
    Transaction tx = sandbox.storage().begin();
    outbox.publish(tx, std::span<const Event>(events));
    tx.commit();
    published += events.size();
  }
  metrics.await_flushed(published);
  const double rate = static_cast<double>(published) / watch.seconds();
  outbox.stop();
  sandbox.expect_all_done(published);
  return {rate, static_cast<double>(metrics.dropped()) / static_cast<double>(published),
          metrics.events_per_flush()};
}

std::vector<BareRow> bare_rows(std::size_t first) {
  std::vector<BareRow> rows;
  rows.reserve(per_transaction);
  for (std::size_t i = 0; i < per_transaction; ++i) rows.push_back({new_event_id(), payload_200(first + i)});
  return rows;
}

/// One thread inserts, one finishes, each with its connection: what ours has, publisher and completer.
double run_bare_pair(Sandbox& sandbox, BareWriter& inserter, BareWriter& finisher, double seconds) {
  sandbox.clear();
  std::mutex mutex;
  std::condition_variable more;
  std::vector<EventId> inserted;
  bool ended = false;
  std::exception_ptr failure;

  const Stopwatch watch;
  std::size_t finished = 0;
  std::thread completer([&] {
    try {
      for (std::vector<EventId> batch;; finished += batch.size()) {
        std::unique_lock lock(mutex);
        more.wait(lock, [&] { return ended || inserted.size() >= per_finish; });
        if (inserted.empty()) return;
        const std::size_t take = std::min(per_finish, inserted.size());
        batch.assign(inserted.end() - static_cast<std::ptrdiff_t>(take), inserted.end());
        inserted.resize(inserted.size() - take);
        lock.unlock();
        finisher.finish(batch);
      }
    } catch (...) {
      failure = std::current_exception();
    }
  });
  std::size_t published = 0;
  try {
    while (watch.seconds() < seconds) {
      const std::vector<BareRow> rows = bare_rows(published);
      inserter.insert(rows);
      published += rows.size();
      {
        const std::lock_guard lock(mutex);
        for (const BareRow& row : rows) inserted.push_back(row.id);
        if (inserted.size() < per_finish) continue;
      }
      more.notify_one();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex);
    ended = true;
  }
  more.notify_one();
  completer.join();
  if (failure) std::rethrow_exception(failure);
  const double rate = static_cast<double>(finished) / watch.seconds();
  sandbox.expect_all_done(published);
  return rate;
}

/// SQLite has one writer: two threads would only wait for each other. One thread does both, and never waits.
double run_bare_single(Sandbox& sandbox, BareWriter& writer, double seconds) {
  sandbox.clear();
  const Stopwatch watch;
  std::size_t published = 0;
  std::vector<EventId> inserted;
  const auto finish = [&] {
    for (std::size_t first = 0; first < inserted.size(); first += per_finish) {
      const std::size_t count = std::min(per_finish, inserted.size() - first);
      writer.finish(std::span<const EventId>(inserted).subspan(first, count));
    }
    inserted.clear();
  };
  while (watch.seconds() < seconds) {
    const std::vector<BareRow> rows = bare_rows(published);
    writer.insert(rows);
    published += rows.size();
    for (const BareRow& row : rows) inserted.push_back(row.id);
    if (inserted.size() + per_transaction > per_finish) finish();
  }
  finish();
  const double rate = static_cast<double>(published) / watch.seconds();
  sandbox.expect_all_done(published);
  return rate;
}

}  // namespace

void outbox_cycle(Report& report, BackendKind kind, const std::string& line, CycleSetting setting) {
  Sandbox sandbox(kind, "bench_cycle");
  BareOptions options{.url = sandbox.url(), .table = sandbox.table()};
  std::string baseline;
  std::function<double(double)> bare;
  std::unique_ptr<BareWriter> first;
  std::unique_ptr<BareWriter> second;
  if (kind == BackendKind::sqlite) {
    baseline = "bare-sqlite3";
    options.url = sandbox.file().string();
    first = bare_sqlite(options);
    bare = [&](double seconds) { return run_bare_single(sandbox, *first, seconds); };
  } else {
    const bool postgres = kind == BackendKind::postgres;
    baseline = postgres ? "bare-libpq" : "bare-libmariadb";
    first = postgres ? bare_libpq(options) : bare_libmariadb(options);
    second = postgres ? bare_libpq(options) : bare_libmariadb(options);
    bare = [&](double seconds) { return run_bare_pair(sandbox, *first, *second, seconds); };
  }

  run_ours(sandbox, setting.hot_queue_capacity, 0.5);  // warm: files grown, statements prepared
  bare(0.5);
  std::vector<double> dropped;
  std::vector<double> per_flush;
  const Medians rates = interleave(
      line, default_rounds,
      [&] {
        const OursRound round = run_ours(sandbox, setting.hot_queue_capacity, publish_seconds);
        dropped.push_back(round.dropped);
        per_flush.push_back(round.per_flush);
        return round.rate;
      },
      [&] { return bare(publish_seconds); });
  report.print({line,
                rates.ours,
                "events/s",
                baseline,
                rates.bare,
                setting.target,
                {{"rounds", double{default_rounds}},
                 {"spread", rates.spread},
                 {"cold_part", median(dropped)},
                 {"events_per_flush", median(per_flush)}}});
}

}  // namespace postrider::bench
