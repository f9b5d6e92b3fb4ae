// SPDX-License-Identifier: Apache-2.0
#include "bare_writer.hpp"
#include "harness.hpp"

#if defined(POSTRIDER_WITH_MARIADB)

#include <chrono>
#include <ctime>
#include <map>
#include <vector>

#include "bare_mariadb_connection.hpp"

namespace postrider::bench {

namespace {

std::string repeated(const std::string& text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += (i == 0 ? "" : ", ") + text;
  return out;
}

MYSQL_TIME utc_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm tm{};
  gmtime_r(&seconds, &tm);
  MYSQL_TIME time{};
  time.year = static_cast<unsigned>(tm.tm_year) + 1900;
  time.month = static_cast<unsigned>(tm.tm_mon) + 1;
  time.day = static_cast<unsigned>(tm.tm_mday);
  time.hour = static_cast<unsigned>(tm.tm_hour);
  time.minute = static_cast<unsigned>(tm.tm_min);
  time.second = static_cast<unsigned>(tm.tm_sec);
  time.time_type = MYSQL_TIMESTAMP_DATETIME;
  return time;
}

/// Statements over many rows, one prepared for each number of rows met: here nearly always the same.
class MariadbWriter final : public BareWriter {
 public:
  explicit MariadbWriter(const BareOptions& options) : table_(options.table), connection_(options.url) {}
  ~MariadbWriter() override {
    for (const auto& [rows, statement] : inserts_) mysql_stmt_close(statement);
    for (const auto& [rows, statement] : finishes_) mysql_stmt_close(statement);
  }
  MariadbWriter(const MariadbWriter&) = delete;
  MariadbWriter& operator=(const MariadbWriter&) = delete;

  void insert(std::span<const BareRow> rows) override {
    MYSQL_TIME now = utc_now();
    std::vector<MYSQL_BIND> binds;
    binds.reserve(rows.size() * 5);
    for (const BareRow& row : rows) {
      bind_text(binds, row.id.view());
      bind_text(binds, bench_type);
      bind_text(binds, row.payload);
      MYSQL_BIND& time = binds.emplace_back();
      time.buffer_type = MYSQL_TYPE_DATETIME;
      time.buffer = &now;
      bind_text(binds, bare_owner);
    }
    connection_.simple("BEGIN");
    MariadbConnection::execute(
        prepared(inserts_, rows.size(),
                 "INSERT INTO " + table_ +
                     " (event_id, event_type, payload, occurred_at, owner, lease_until) VALUES ",
                 "(?, ?, ?, ?, ?, UTC_TIMESTAMP(6) + INTERVAL 30 SECOND)", ""),
        binds.data());
    connection_.simple("COMMIT");
  }

  void finish(std::span<const EventId> ids) override {
    std::vector<MYSQL_BIND> binds;
    binds.reserve(ids.size());
    for (const EventId& id : ids) bind_text(binds, id.view());
    MariadbConnection::execute(
        prepared(finishes_, ids.size(),
                 "UPDATE " + table_ +
                     " SET status = 1, done_at = UTC_TIMESTAMP(6), owner = NULL, lease_until = NULL "
                     "WHERE event_id IN (",
                 "?", ")"),
        binds.data());
  }

 private:
  using Statements = std::map<std::size_t, MYSQL_STMT*>;

  static void bind_text(std::vector<MYSQL_BIND>& binds, std::string_view text) {
    MYSQL_BIND& bind = binds.emplace_back();
    bind.buffer_type = MYSQL_TYPE_STRING;
    bind.buffer = const_cast<char*>(text.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
    bind.buffer_length = text.size();
  }
  MYSQL_STMT* prepared(Statements& statements, std::size_t rows, const std::string& head,
                       const std::string& each, const std::string& tail) {
    MYSQL_STMT*& statement = statements[rows];
    if (statement == nullptr) statement = connection_.prepare(head + repeated(each, rows) + tail);
    return statement;
  }

  std::string table_;
  MariadbConnection connection_;
  Statements inserts_;
  Statements finishes_;
};

}  // namespace

std::unique_ptr<BareWriter> bare_libmariadb(const BareOptions& options) {
  return std::make_unique<MariadbWriter>(options);
}

}  // namespace postrider::bench

#else

std::unique_ptr<postrider::bench::BareWriter> postrider::bench::bare_libmariadb(const BareOptions&) {
  throw Unavailable("MariaDB is not compiled in");
}

#endif
