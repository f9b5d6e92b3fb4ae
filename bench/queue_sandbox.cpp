// SPDX-License-Identifier: Apache-2.0
#include "queue_sandbox.hpp"

#include <algorithm>

#include "bare_writer.hpp"
#include "harness.hpp"

namespace postrider::bench {

BareQueueOptions QueueSandbox::bare() const {
  const bool file = sandbox_.kind() == BackendKind::sqlite;
  return {.url = file ? sandbox_.file().string() : sandbox_.url(),
          .queue = queue_,
          .log = log_,
          .numbers = sandbox_.table("event_log_numbers")};
}

void QueueSandbox::clear() {
  switch (sandbox_.kind()) {
    case BackendKind::sqlite:
      sandbox_.run("DELETE FROM " + queue_);
      sandbox_.run("DELETE FROM " + log_);
      return;
    case BackendKind::postgres:
      sandbox_.run("TRUNCATE TABLE " + queue_ + ", " + log_);
      return;
    case BackendKind::mariadb:
      sandbox_.clear();  // makes all tables anew
      return;
  }
}

void QueueSandbox::seed(std::size_t rows) {
  constexpr std::size_t per_transaction = 20'000;
  const BackendKind kind = sandbox_.kind();
  for (std::size_t left = rows; left > 0;) {
    const std::size_t count = std::min(left, per_transaction);
    sandbox_.run("INSERT INTO " + queue_ + " (event_id, event_type, payload) SELECT " + numbered_id(kind) +
                 ", '" + std::string(bench_type) + "', " + numbered_payload(kind) + " FROM " +
                 numbers(kind, seeded_ + 1, seeded_ + count));
    seeded_ += count;
    left -= count;
  }
  // Fresh statistics, as autovacuum would make them sooner or later.
  if (kind == BackendKind::postgres) sandbox_.run("ANALYZE " + queue_);
}

void QueueSandbox::expect_all_logged(std::size_t rows) {
  const auto expected = static_cast<std::int64_t>(rows);
  const auto expect = [&](const char* what, const std::string& sql, std::int64_t wanted) {
    const std::int64_t found = sandbox_.number(sql);
    if (found == wanted) return;
    throw std::runtime_error(std::to_string(rows) + " events were to be handled, but there are " +
                             std::to_string(found) + " " + what);
  };
  expect("left in the queue", "SELECT count(*) FROM " + queue_, 0);
  expect("in the log", "SELECT count(*) FROM " + log_ + " WHERE status = 2", expected);
  expect("entries in the log", "SELECT count(*) FROM " + log_, expected);
  expect("different ones in the log", "SELECT count(DISTINCT event_id) FROM " + log_, expected);
  expect("different numbers in the log", "SELECT count(DISTINCT seq) FROM " + log_, expected);
}

double QueueSandbox::drain(std::size_t rows, DrainMetrics& metrics) {
  EventQueue queue(storage(), {.metrics = &metrics});
  EventManager manager(queue);
  manager.register_handler("bench", EventType(bench_type), [](const Event&) {});
  const Stopwatch watch;
  manager.start();
  metrics.await_flushed(rows);
  const double rate = static_cast<double>(rows) / watch.seconds();
  manager.stop();
  return rate;
}

}  // namespace postrider::bench
