// SPDX-License-Identifier: Apache-2.0
// What the bare sides share that use SQLite.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace postrider::bench {

inline std::int64_t micros_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Owns its statements too.
class SqliteConnection {
 public:
  explicit SqliteConnection(const std::string& file) {
    if (sqlite3_open(file.c_str(), &connection_) != SQLITE_OK) fail("open");
    sqlite3_busy_timeout(connection_, 10'000);
    simple("PRAGMA journal_mode = WAL");
    simple("PRAGMA synchronous = FULL");
  }
  ~SqliteConnection() {
    for (sqlite3_stmt* statement : statements_) sqlite3_finalize(statement);
    sqlite3_close(connection_);
  }
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  static void bind_text(sqlite3_stmt* statement, int index, std::string_view text) {
    sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }
  [[nodiscard]] sqlite3_stmt* prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(connection_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
        SQLITE_OK) {
      fail(sql.c_str());
    }
    statements_.push_back(statement);
    return statement;
  }
  /// Returns how many rows were changed.
  std::size_t step(sqlite3_stmt* statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) fail(sqlite3_sql(statement));
    sqlite3_reset(statement);
    return static_cast<std::size_t>(sqlite3_changes(connection_));
  }

 private:
  void simple(const char* sql) {
    if (sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(sql);
  }
  [[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("bare sqlite: ") + what + ": " + sqlite3_errmsg(connection_));
  }

  sqlite3* connection_ = nullptr;
  std::vector<sqlite3_stmt*> statements_;
};

}  // namespace postrider::bench
