// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "relay.hpp"
#include "sandbox.hpp"
#if defined(POSTRIDER_WITH_POSTGRES)
#include "bare_libpq_connection.hpp"
#endif

namespace postrider::bench {

namespace {

constexpr std::size_t present = 500'000;
constexpr std::size_t batch = 100;  // PairOptions' default

/// Takes everything, and lets one wait for a number of events.
class NullPublisher final : public Publisher {
 public:
  explicit NullPublisher(std::string name) : name_(std::move(name)) {}
  PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext&) override {
    const std::lock_guard lock(mutex_);
    count_ += events.size();
    if (count_ >= awaited_) reached_.notify_all();
    return PublishResult::all();
  }
  std::string name() const override { return name_; }
  void await(std::size_t events) {
    std::unique_lock lock(mutex_);
    awaited_ = events;
    if (!reached_.wait_for(lock, std::chrono::seconds{120}, [&] { return count_ >= events; })) {
      throw std::runtime_error("only " + std::to_string(count_) + " of " + std::to_string(events) +
                               " published");
    }
  }

 private:
  std::string name_;
  std::mutex mutex_;
  std::condition_variable reached_;
  std::size_t count_ = 0;
  std::size_t awaited_ = 0;
};

class CountReads final : public MetricsExporter {
 public:
  void observe_relay_read(std::size_t, bool, Duration) override { ++reads; }
  std::atomic<std::size_t> reads{0};
};

/// Events with 128 bytes of data and two tags.
void seed(Sandbox& sandbox, std::size_t rows) {
  constexpr std::size_t per_transaction = 50'000;
  for (std::size_t done = 0; done < rows; done += per_transaction) {
    sandbox.run(
        "INSERT INTO " + sandbox.table("events") +
        " (position, event_id, type, tags, data, occurred_at, stored_at, size) SELECT n, 'SEED' || "
        "lpad(n::text, 22, '0'), 'BenchEvent', '[\"wallet_id=' || (n % 1000) || '\",\"kind=bench\"]', "
        "('{\"n\":' || (100000000000 + n)::text || ',\"text\":\"' || repeat('x', 100) || '\"}')::json, "
        "now(), "
        "now(), 160 FROM " +
        numbers(BackendKind::postgres, done + 1, std::min(rows, done + per_transaction)));
  }
  sandbox.run("ANALYZE " + sandbox.table("events"));
}

double catch_up(Sandbox& sandbox, int round) {
  Relay relay(sandbox.storage());
  const auto publisher = std::make_shared<NullPublisher>("null" + std::to_string(round));
  relay.add({.name = "all"}, publisher);
  const Stopwatch watch;
  relay.start();
  publisher->await(present);
  relay.stop();  // writes the progress
  const double rate = static_cast<double>(present) / watch.seconds();
  const auto status = relay.admin().find("all", publisher->name());
  if (!status || status->position != Position{present})
    throw std::runtime_error("the progress is not stored");
  return rate;
}

#if defined(POSTRIDER_WITH_POSTGRES)
double select_bare(LibpqConnection& connection) {
  const Stopwatch watch;
  std::size_t rows = 0;
  while (rows < present) {
    const std::string after = int64_bytes(static_cast<std::int64_t>(rows));
    const char* const values[] = {after.data()};
    const int lengths[] = {static_cast<int>(after.size())};
    const std::size_t got = connection.execute("page", values, lengths);
    if (got == 0) throw std::runtime_error("too few rows");
    rows += got;
  }
  return static_cast<double>(rows) / watch.seconds();
}
#endif

/// Reads of the database while one event after the other is appended.
std::size_t live_reads(Sandbox& sandbox, const std::string& name, int pairs) {
  constexpr std::size_t appends = 1'000;
  CountReads metrics;
  Relay relay(sandbox.storage(), {.metrics = &metrics});
  std::vector<std::shared_ptr<NullPublisher>> publishers;
  PairOptions options;
  options.start = StartAt::head();
  for (int i = 0; i < pairs; ++i) {
    publishers.push_back(std::make_shared<NullPublisher>(name + std::to_string(i % 10)));
    if (i >= 10) publishers.back() = publishers[static_cast<std::size_t>(i % 10)];
    relay.add({.name = name + std::to_string(i / 10)}, publishers.back(), options);
  }
  EventStore store(sandbox.storage());
  relay.start();
  const std::size_t topics = static_cast<std::size_t>(pairs + 9) / 10;
  store.append({AppendEvent::builder("BenchEvent").tag("a", "1").tag("b", "2").data("{}")});
  for (const auto& publisher : publishers) publisher->await(topics);
  const std::size_t before = metrics.reads;
  for (std::size_t i = 1; i <= appends; ++i) {
    store.append({AppendEvent::builder("BenchEvent").tag("a", "1").tag("b", "2").data("{}")});
  }
  for (const auto& publisher : publishers) publisher->await(topics * (appends + 1));
  const std::size_t reads = metrics.reads - before;
  relay.stop();
  return reads;
}

}  // namespace

void relay_throughput(Report& report, const std::string& line) {
#if defined(POSTRIDER_WITH_POSTGRES)
  Sandbox sandbox(BackendKind::postgres, "bench_relay");
  seed(sandbox, present);
  LibpqConnection bare(sandbox.url());
  const Oid types[] = {20};
  bare.prepare(
      "page",
      "SELECT position, event_id, type, tags, data, data_bytes, metadata, correlation_id, causation_id, "
      "occurred_at, stored_at FROM " +
          sandbox.table("events") + " WHERE position > $1 ORDER BY position LIMIT " + std::to_string(batch),
      types);
  int round = 0;
  const Medians rates = interleave(
      line, default_rounds, [&] { return catch_up(sandbox, ++round); }, [&] { return select_bare(bare); });
  report.print({line,
                rates.ours,
                "events/s",
                "bare-libpq",
                rates.bare,
                Target::at_least(0.60),
                {{"rounds", double{default_rounds}}, {"spread", rates.spread}, {"events", double{present}}}});
#else
  (void)report;
  throw Unavailable(line + " needs PostgreSQL");
#endif
}

void relay_shared_reads(Report& report, const std::string& line) {
  Sandbox sandbox(BackendKind::postgres, "bench_relay_reads");
  int round = 0;
  const Medians reads = interleave(
      line, 3,
      [&] { return static_cast<double>(live_reads(sandbox, "f" + std::to_string(++round) + "_", 50)); },
      [&] { return static_cast<double>(live_reads(sandbox, "o" + std::to_string(round) + "_", 1)); });
  report.print({line, reads.ours, "reads", "one-pair", reads.bare, Target::at_most(2.0), {{"pairs", 50.0}}});
}

}  // namespace postrider::bench
