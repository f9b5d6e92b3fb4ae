// SPDX-License-Identifier: Apache-2.0
#include "bare_writer.hpp"
#include "harness.hpp"

#if defined(POSTRIDER_WITH_MARIADB)

#include <mysql.h>

#include <chrono>
#include <ctime>
#include <map>
#include <vector>

namespace postrider::bench {

namespace {

/// The parts of mariadb://user:password@host:port/database, as the test servers' URLs are: nothing is escaped
/// in them.
struct Address {
  std::string user, password, host, database;
  unsigned port = 3306;

  explicit Address(const std::string& url) {
    const auto user_at = url.find("://") + 3;
    const auto host_at = url.find('@', user_at) + 1;
    const auto path_at = url.find('/', host_at);
    if (user_at < 3 || host_at == 0 || path_at == std::string::npos)
      throw std::runtime_error("cannot read " + url);
    user = url.substr(user_at, host_at - 1 - user_at);
    if (const auto colon = user.find(':'); colon != std::string::npos) {
      password = user.substr(colon + 1);
      user.erase(colon);
    }
    host = url.substr(host_at, path_at - host_at);
    if (const auto colon = host.find(':'); colon != std::string::npos) {
      port = static_cast<unsigned>(std::stoul(host.substr(colon + 1)));
      host.erase(colon);
    }
    database = url.substr(path_at + 1, url.find('?', path_at) - path_at - 1);
  }
};

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
  explicit MariadbWriter(const BareOptions& options)
      : table_(options.table), connection_(mysql_init(nullptr)) {
    const Address address(options.url);
    if (mysql_real_connect(connection_, address.host.c_str(), address.user.c_str(), address.password.c_str(),
                           address.database.c_str(), address.port, nullptr, 0) == nullptr) {
      fail("connect");
    }
    simple("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }
  ~MariadbWriter() override {
    for (const auto& [rows, statement] : inserts_) mysql_stmt_close(statement);
    for (const auto& [rows, statement] : finishes_) mysql_stmt_close(statement);
    mysql_close(connection_);
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
    simple("BEGIN");
    execute(prepared(inserts_, rows.size(),
                     "INSERT INTO " + table_ +
                         " (event_id, event_type, payload, occurred_at, owner, lease_until) VALUES ",
                     "(?, ?, ?, ?, ?, UTC_TIMESTAMP(6) + INTERVAL 30 SECOND)", ""),
            binds);
    simple("COMMIT");
  }

  void finish(std::span<const EventId> ids) override {
    std::vector<MYSQL_BIND> binds;
    binds.reserve(ids.size());
    for (const EventId& id : ids) bind_text(binds, id.view());
    execute(prepared(finishes_, ids.size(),
                     "UPDATE " + table_ +
                         " SET status = 1, done_at = UTC_TIMESTAMP(6), owner = NULL, lease_until = NULL "
                         "WHERE event_id IN (",
                     "?", ")"),
            binds);
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
    if (statement == nullptr) {
      const std::string sql = head + repeated(each, rows) + tail;
      statement = mysql_stmt_init(connection_);
      if (mysql_stmt_prepare(statement, sql.data(), sql.size()) != 0) fail("prepare");
    }
    return statement;
  }
  void execute(MYSQL_STMT* statement, std::vector<MYSQL_BIND>& binds) {
    if (mysql_stmt_bind_param(statement, binds.data()) != 0 || mysql_stmt_execute(statement) != 0) {
      throw std::runtime_error(std::string("bare libmariadb: ") + mysql_stmt_error(statement));
    }
  }
  void simple(const char* sql) {
    if (mysql_query(connection_, sql) != 0) fail(sql);
  }
  [[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("bare libmariadb: ") + what + ": " + mysql_error(connection_));
  }

  std::string table_;
  MYSQL* connection_;
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
