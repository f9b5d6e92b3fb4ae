// SPDX-License-Identifier: Apache-2.0
#include "bare_sqlite_connection.hpp"
#include "bare_writer.hpp"
#include "harness.hpp"

namespace postrider::bench {

namespace {

class SqliteWriter final : public BareWriter {
 public:
  explicit SqliteWriter(const BareOptions& options)
      : connection_(options.url),
        begin_(connection_.prepare("BEGIN IMMEDIATE")),
        commit_(connection_.prepare("COMMIT")),
        insert_(connection_.prepare(
            "INSERT INTO " + options.table +
            " (event_id, event_type, payload, available_at, created_at, occurred_at, owner, lease_until) "
            "VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5, ?6)")),
        finish_(connection_.prepare(
            "UPDATE " + options.table +
            " SET status = 1, done_at = ?2, owner = NULL, lease_until = NULL WHERE event_id = ?1")) {}

  void insert(std::span<const BareRow> rows) override {
    connection_.step(begin_);
    const std::int64_t now = micros_now();
    for (const BareRow& row : rows) {
      SqliteConnection::bind_text(insert_, 1, row.id.view());
      SqliteConnection::bind_text(insert_, 2, bench_type);
      SqliteConnection::bind_text(insert_, 3, row.payload);
      sqlite3_bind_int64(insert_, 4, now);
      SqliteConnection::bind_text(insert_, 5, bare_owner);
      sqlite3_bind_int64(insert_, 6, now + 30'000'000);
      connection_.step(insert_);
    }
    connection_.step(commit_);
  }

  void finish(std::span<const EventId> ids) override {
    connection_.step(begin_);
    const std::int64_t now = micros_now();
    for (const EventId& id : ids) {
      SqliteConnection::bind_text(finish_, 1, id.view());
      sqlite3_bind_int64(finish_, 2, now);
      connection_.step(finish_);
    }
    connection_.step(commit_);
  }

 private:
  SqliteConnection connection_;
  sqlite3_stmt* begin_;
  sqlite3_stmt* commit_;
  sqlite3_stmt* insert_;
  sqlite3_stmt* finish_;
};

}  // namespace

std::unique_ptr<BareWriter> bare_sqlite(const BareOptions& options) {
  return std::make_unique<SqliteWriter>(options);
}

}  // namespace postrider::bench
