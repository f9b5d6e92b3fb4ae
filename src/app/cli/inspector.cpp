// SPDX-License-Identifier: Apache-2.0
#include "app/cli/inspector.hpp"

#include <sqlite3.h>

#include <charconv>
#include <chrono>
#include <variant>

#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {
namespace {

constexpr int instructions_between_looks = 10'000;
constexpr int busy_milliseconds = 5'000;

[[noreturn]] void throw_too_long(Duration at_most) {
  throw Error(ErrorCode::timeout, "cannot look at the database", "it took longer than " + text_of(at_most));
}

[[noreturn]] void throw_sqlite(sqlite3* db, std::string_view what) {
  throw Error(ErrorCode::database, what, db == nullptr ? "out of memory" : sqlite3_errmsg(db));
}

struct Finalizer {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};

void bind(sqlite3_stmt* statement, int index, const Value& value) {
  struct Binder {
    sqlite3_stmt* to;
    int at;
    int operator()(std::monostate /*null*/) const { return sqlite3_bind_null(to, at); }
    int operator()(std::int64_t v) const { return sqlite3_bind_int64(to, at, v); }
    int operator()(double v) const { return sqlite3_bind_double(to, at, v); }
    int operator()(std::string_view v) const {
      return sqlite3_bind_text(to, at, v.data(), static_cast<int>(v.size()), SQLITE_STATIC);
    }
    int operator()(Blob v) const {
      return sqlite3_bind_blob(to, at, v.bytes.data(), static_cast<int>(v.bytes.size()), SQLITE_STATIC);
    }
  };
  (void)std::visit(Binder{statement, index}, value.get());  // what it refuses, the step refuses again
}

}  // namespace

void Inspector::Closer::operator()(sqlite3* db) const noexcept {
  sqlite3_close(db);
}

Inspector::Inspector(const Database& database, Duration at_most) : database_(database), at_most_(at_most) {}
Inspector::~Inspector() = default;

std::string Inspector::micros(std::string_view column) const {
  std::string name(column);
  switch (kind()) {
    case BackendKind::sqlite:
      return name;
    case BackendKind::postgres:
      return "(extract(epoch from " + name + ") * 1000000)::bigint";
    case BackendKind::mariadb:
      break;
  }
  return "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', " + name + ")";
}

std::string Inspector::now_micros() const {
  switch (kind()) {
    case BackendKind::sqlite:
      return "cast((julianday('now') - 2440587.5) * 86400000 as integer) * 1000";
    case BackendKind::postgres:
      return micros("clock_timestamp()");
    case BackendKind::mariadb:
      break;
  }
  return micros("UTC_TIMESTAMP(6)");
}

Rows Inspector::select(const std::string& sql, std::span<const Value> params) {
  deadline_ = Clock::system().steady_now() + at_most_;
  return kind() == BackendKind::sqlite ? select_sqlite(sql, params) : select_server(sql, params);
}

Rows Inspector::select_sqlite(const std::string& sql, std::span<const Value> params) {
  if (!sqlite_) {
    sqlite3* db = nullptr;
    const std::string path = sqlite_file(database_.url).value_or("");
    const int code = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    sqlite_.reset(db);
    if (code != SQLITE_OK) throw_sqlite(db, "cannot open " + database_.url);
    sqlite3_busy_timeout(db, busy_milliseconds);
    sqlite3_exec(db, "pragma query_only = 1", nullptr, nullptr, nullptr);
    sqlite3_progress_handler(
        db, instructions_between_looks,
        [](void* self) {
          return Clock::system().steady_now() > static_cast<Inspector*>(self)->deadline_ ? 1 : 0;
        },
        this);
  }
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(sqlite_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
    throw_sqlite(sqlite_.get(), cannot_run(sql));
  }
  const std::unique_ptr<sqlite3_stmt, Finalizer> statement(raw);
  for (std::size_t i = 0; i < params.size(); ++i) bind(raw, static_cast<int>(i) + 1, params[i]);
  Rows rows;
  for (;;) {
    const int code = sqlite3_step(raw);
    if (code == SQLITE_DONE) return rows;
    if (code == SQLITE_INTERRUPT) throw_too_long(at_most_);
    if (code != SQLITE_ROW) throw_sqlite(sqlite_.get(), cannot_run(sql));
    std::vector<Rows::Cell>& row = rows.rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(raw); ++i) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): text is text
      const auto* const cell = reinterpret_cast<const char*>(sqlite3_column_text(raw, i));
      row.push_back(cell == nullptr ? Rows::Cell{}
                                    : Rows::Cell{std::string(
                                          cell, static_cast<std::size_t>(sqlite3_column_bytes(raw, i)))});
    }
  }
}

Rows Inspector::select_server(const std::string& sql, std::span<const Value> params) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(at_most_).count();
  Transaction tx = database_.storage->begin();
  try {
    if (kind() == BackendKind::postgres) {
      tx.execute("set local transaction_read_only = on");
      tx.execute("set local statement_timeout = " + std::to_string(milliseconds));
      return tx.run(sql, params);
    }
    const bool mariadb = tx.execute("select version() like '%MariaDB%'").integer(0, 0) == 1;
    if (mariadb) {
      return tx.run(
          "set statement max_statement_time = " + std::to_string(milliseconds / 1000 + 1) + " for " + sql,
          params);
    }
    constexpr std::string_view word = "select ";
    return tx.run("select /*+ MAX_EXECUTION_TIME(" + std::to_string(milliseconds) + ") */ " +
                      sql.substr(sql.starts_with(word) ? word.size() : 0),
                  params);
  } catch (const Error&) {
    if (Clock::system().steady_now() >= deadline_) throw_too_long(at_most_);
    throw;
  }
}

std::string Inspector::text(const std::string& sql) {
  const Rows rows = select(sql);
  return rows.empty() || rows.rows.front().empty() ? std::string() : rows.rows.front().front().value_or("");
}

std::int64_t Inspector::number(const std::string& sql) {
  const std::string found = text(sql);
  std::int64_t value = 0;
  (void)std::from_chars(found.data(), found.data() + found.size(), value);  // 0 for what is none
  return value;
}

}  // namespace postrider::cli
