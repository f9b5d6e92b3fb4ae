// SPDX-License-Identifier: Apache-2.0
#include "eventlog.hpp"

#if !defined(POSTRIDER_BENCH_PROGRAM)

namespace postrider::bench {
void eventlog_api(Report& /*report*/, const std::string& line) {
  throw Unavailable(line + " needs the program: libboost1.81-dev libboost-url1.81-dev libcli11-dev");
}
}  // namespace postrider::bench

#else

#include <algorithm>
#include <atomic>
#include <thread>

#include "app/api/event_log_api.hpp"
#include "app/http/server.hpp"
#include "bare_http_connection.hpp"
#include "bare_sqlite_connection.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr std::size_t batches = 120;
constexpr std::size_t per_batch = 500;
constexpr std::size_t clients = 2;
constexpr double entries = batches * per_batch;

/// What the pet resort logs: with its key about 380 bytes of JSON.
struct Row {
  std::string correlation;
  std::string step;
  std::string details;
  std::string key;
};

Row row_of(std::size_t n) {
  const std::string number = std::to_string(100'000 + n);
  return {"a1b2c3d4-" + std::to_string(n / 5), n % 5 == 0 ? "BookingCreated" : "RoomAssigned",
          "Booking BK-20260601-" + number + " created for PET-" + std::to_string(n % 1000) + " in room " +
              std::to_string(n % 40),
          new_event_id().str()};
}

std::string json_of(const Row& row) {
  return R"({"applicationId":"pet-resort-api","correlationId":")" + row.correlation +
         R"(","processName":"CreateBooking","processStatus":"PROCESS_STEP","step":")" + row.step +
         R"(","details":")" + row.details +
         R"(","targetSystem":"PET_RESORT","originatingSystem":"PET_RESORT","timestamp":"2026-06-01T10:15:30.123Z",)"
         R"("userId":"system","idempotencyKey":")" +
         row.key + "\"}";
}

std::vector<std::vector<Row> > make_batches() {
  std::vector<std::vector<Row> > made(batches);
  for (std::size_t b = 0; b < batches; ++b) {
    for (std::size_t i = 0; i < per_batch; ++i) made[b].push_back(row_of(b * per_batch + i));
  }
  return made;
}

std::int64_t stored(Sandbox& sandbox) {
  return sandbox.number("SELECT count(*) FROM " + sandbox.table("event_log_entries"));
}

void expect_all_stored(Sandbox& sandbox) {
  if (stored(sandbox) != static_cast<std::int64_t>(entries))
    throw std::runtime_error("eventlog.api: entries are missing");
}

double run_ours() {
  Sandbox sandbox(BackendKind::sqlite, "bench_eventlog");
  std::vector<std::string> requests;
  for (const std::vector<Row>& batch : make_batches()) {
    std::string body = "[";
    for (const Row& row : batch) body += (body.size() > 1 ? "," : "") + json_of(row);
    body += "]";
    requests.push_back(HttpConnection::batch_request(body));
  }
  api::EventLogApi api(sandbox.storage(), {});
  http::Router router;
  api.add_routes(router);
  http::Server server(std::move(router), {});
  server.start();
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const Stopwatch watch;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < clients; ++i) {
      threads.emplace_back([&] {
        try {
          HttpConnection connection(server.port());
          for (std::size_t at = next++; at < requests.size(); at = next++) connection.post(requests[at]);
        } catch (const std::exception&) {
          failed = true;
        }
      });
    }
  }
  const double seconds = watch.seconds();
  server.stop(std::chrono::seconds{5});
  api.stop();
  if (failed) throw std::runtime_error("eventlog.api: a batch was not stored");
  expect_all_stored(sandbox);
  return entries / seconds;
}

double run_bare() {
  Sandbox sandbox(BackendKind::sqlite, "bench_eventlog");
  const std::string table = sandbox.table("event_log_entries");
  const std::vector<std::vector<Row> > all = make_batches();
  SqliteConnection connection(sandbox.file().string());
  sqlite3_stmt* begin = connection.prepare("BEGIN IMMEDIATE");
  sqlite3_stmt* commit = connection.prepare("COMMIT");
  sqlite3_stmt* insert = connection.prepare(
      "INSERT INTO " + table +
      " (application_id, correlation_id, process_name, process_status, step, details, target_system, "
      "originating_system, user_id, idempotency_key, occurred_at, received_at) VALUES ('pet-resort-api', ?1, "
      "'CreateBooking', 'PROCESS_STEP', ?2, ?3, 'PET_RESORT', 'PET_RESORT', 'system', ?4, ?5, ?6)");
  const Stopwatch watch;
  for (const std::vector<Row>& batch : all) {
    connection.step(begin);
    const std::int64_t now = micros_now();
    for (const Row& row : batch) {
      SqliteConnection::bind_text(insert, 1, row.correlation);
      SqliteConnection::bind_text(insert, 2, row.step);
      SqliteConnection::bind_text(insert, 3, row.details);
      SqliteConnection::bind_text(insert, 4, row.key);
      sqlite3_bind_int64(insert, 5, 1'780'308'930'123'000);
      sqlite3_bind_int64(insert, 6, now);
      connection.step(insert);
    }
    connection.step(commit);
  }
  const double seconds = watch.seconds();
  expect_all_stored(sandbox);
  return entries / seconds;
}

}  // namespace

void eventlog_api(Report& report, const std::string& line) {
  const Medians rates = interleave(line, default_rounds, run_ours, run_bare);
  report.print({line,
                rates.ours,
                "entries/s",
                "bare-sqlite",
                rates.bare,
                Target::at_least(0.40),
                {{"rounds", double{default_rounds}}, {"spread", rates.spread}}});
}

}  // namespace postrider::bench

#endif
