// SPDX-License-Identifier: Apache-2.0
#include "bare_sqlite_connection.hpp"
#include "bare_stream.hpp"

namespace postrider::bench {

namespace {

class SqliteAppender final : public BareAppender {
 public:
  SqliteAppender(const std::string& file, const std::string& events, const std::string& tags)
      : connection_(file),
        begin_(connection_.prepare("BEGIN IMMEDIATE")),
        commit_(connection_.prepare("COMMIT")),
        head_(connection_.prepare("SELECT position FROM " + events + " ORDER BY position DESC LIMIT 1")),
        probe_(connection_.prepare("SELECT position FROM " + tags +
                                   " WHERE hash = ? AND position > ? ORDER BY position DESC LIMIT 1")),
        event_(connection_.prepare(
            "INSERT INTO " + events +
            " (position, event_id, type, tags, occurred_at, stored_at, size, data) VALUES "
            "(?, ?, ?, ?, ?, ?, ?, ?)")),
        tag_(connection_.prepare("INSERT INTO " + tags + " (hash, position) VALUES (?, ?)")) {}

  std::int64_t append(std::span<const BareStreamRow> rows, std::int64_t hash, std::int64_t after) override {
    connection_.step(begin_);
    std::int64_t position = first(head_);
    sqlite3_bind_int64(probe_, 1, hash);
    sqlite3_bind_int64(probe_, 2, after);
    if (first(probe_) > 0) throw std::runtime_error("bare sqlite: a conflict");
    const std::int64_t now = micros_now();
    for (const BareStreamRow& row : rows) {
      sqlite3_bind_int64(event_, 1, ++position);
      SqliteConnection::bind_text(event_, 2, row.id.view());
      SqliteConnection::bind_text(event_, 3, row.type);
      SqliteConnection::bind_text(event_, 4, row.tags);
      sqlite3_bind_int64(event_, 5, now);
      sqlite3_bind_int64(event_, 6, now);
      sqlite3_bind_int64(event_, 7, static_cast<std::int64_t>(row.data.size()));
      SqliteConnection::bind_text(event_, 8, row.data);
      connection_.step(event_);
      for (const std::int64_t one : row.hashes) {
        sqlite3_bind_int64(tag_, 1, one);
        sqlite3_bind_int64(tag_, 2, position);
        connection_.step(tag_);
      }
    }
    connection_.step(commit_);
    return position;
  }

 private:
  static std::int64_t first(sqlite3_stmt* statement) {
    const std::int64_t number =
        sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    return number;
  }

  SqliteConnection connection_;
  sqlite3_stmt* begin_;
  sqlite3_stmt* commit_;
  sqlite3_stmt* head_;
  sqlite3_stmt* probe_;
  sqlite3_stmt* event_;
  sqlite3_stmt* tag_;
};

}  // namespace

std::unique_ptr<BareAppender> bare_appender_sqlite(const std::string& file, const std::string& events,
                                                   const std::string& tags) {
  return std::make_unique<SqliteAppender>(file, events, tags);
}

}  // namespace postrider::bench
