// SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>

#include <chrono>

#include "bare_writer.hpp"
#include "harness.hpp"

namespace postrider::bench {

namespace {

std::int64_t micros_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class SqliteWriter final : public BareWriter {
 public:
  explicit SqliteWriter(const BareOptions& options) {
    if (sqlite3_open(options.url.c_str(), &connection_) != SQLITE_OK) fail("open");
    sqlite3_busy_timeout(connection_, 10'000);
    simple("PRAGMA journal_mode = WAL");
    simple("PRAGMA synchronous = FULL");
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    insert_ =
        prepare("INSERT INTO " + options.table +
                " (event_id, event_type, payload, available_at, created_at, occurred_at, owner, lease_until) "
                "VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5, ?6)");
    finish_ = prepare("UPDATE " + options.table +
                      " SET status = 1, done_at = ?2, owner = NULL, lease_until = NULL WHERE event_id = ?1");
  }
  ~SqliteWriter() override {
    for (sqlite3_stmt* statement : {begin_, commit_, insert_, finish_}) sqlite3_finalize(statement);
    sqlite3_close(connection_);
  }
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  void insert(std::span<const BareRow> rows) override {
    step(begin_);
    const std::int64_t now = micros_now();
    for (const BareRow& row : rows) {
      bind_text(insert_, 1, row.id.view());
      bind_text(insert_, 2, bench_type);
      bind_text(insert_, 3, row.payload);
      sqlite3_bind_int64(insert_, 4, now);
      bind_text(insert_, 5, bare_owner);
      sqlite3_bind_int64(insert_, 6, now + 30'000'000);
      step(insert_);
    }
    step(commit_);
  }

  void finish(std::span<const EventId> ids) override {
    step(begin_);
    const std::int64_t now = micros_now();
    for (const EventId& id : ids) {
      bind_text(finish_, 1, id.view());
      sqlite3_bind_int64(finish_, 2, now);
      step(finish_);
    }
    step(commit_);
  }

 private:
  static void bind_text(sqlite3_stmt* statement, int index, std::string_view text) {
    sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }
  void simple(const char* sql) {
    if (sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(sql);
  }
  sqlite3_stmt* prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(connection_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
        SQLITE_OK) {
      fail(sql.c_str());
    }
    return statement;
  }
  void step(sqlite3_stmt* statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) fail(sqlite3_sql(statement));
    sqlite3_reset(statement);
  }
  [[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("bare sqlite: ") + what + ": " + sqlite3_errmsg(connection_));
  }

  sqlite3* connection_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* finish_ = nullptr;
};

}  // namespace

std::unique_ptr<BareWriter> bare_sqlite(const BareOptions& options) {
  return std::make_unique<SqliteWriter>(options);
}

}  // namespace postrider::bench
