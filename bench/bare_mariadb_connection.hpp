// SPDX-License-Identifier: Apache-2.0
// What the bare sides share that talk to MariaDB. Only where it is compiled in.
#pragma once

#include <mysql.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace postrider::bench {

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

class MariadbConnection {
 public:
  explicit MariadbConnection(const std::string& url) : connection_(mysql_init(nullptr)) {
    const Address address(url);
    if (mysql_real_connect(connection_, address.host.c_str(), address.user.c_str(), address.password.c_str(),
                           address.database.c_str(), address.port, nullptr, 0) == nullptr) {
      fail("connect");
    }
    simple("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }
  ~MariadbConnection() { mysql_close(connection_); }
  MariadbConnection(const MariadbConnection&) = delete;
  MariadbConnection& operator=(const MariadbConnection&) = delete;

  [[nodiscard]] MYSQL_STMT* prepare(const std::string& sql) {
    MYSQL_STMT* statement = mysql_stmt_init(connection_);
    if (mysql_stmt_prepare(statement, sql.data(), sql.size()) != 0) fail("prepare");
    return statement;
  }
  /// Returns how many rows were affected.
  static std::size_t execute(MYSQL_STMT* statement, MYSQL_BIND* binds = nullptr) {
    if ((binds != nullptr && mysql_stmt_bind_param(statement, binds) != 0) ||
        mysql_stmt_execute(statement) != 0) {
      throw std::runtime_error(std::string("bare libmariadb: ") + mysql_stmt_error(statement));
    }
    return mysql_stmt_affected_rows(statement);
  }
  void simple(const char* sql) {
    if (mysql_query(connection_, sql) != 0) fail(sql);
  }

 private:
  [[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("bare libmariadb: ") + what + ": " + mysql_error(connection_));
  }

  MYSQL* connection_;
};

}  // namespace postrider::bench
