// SPDX-License-Identifier: Apache-2.0
#include "support/foreign_connection.hpp"

#include <sqlite3.h>

#include <stdexcept>

#include "postrider/sqlite.hpp"
#if defined(POSTRIDER_WITH_POSTGRES)
#include <libpq-fe.h>

#include "postrider/postgres.hpp"
#endif
#if defined(POSTRIDER_WITH_MARIADB)
#include <mysql.h>

#include <regex>

#include "postrider/mariadb.hpp"
#endif

namespace postrider::test {

namespace {

class ForeignSqlite final : public ForeignConnection {
 public:
  explicit ForeignSqlite(const std::string& url) {
    const std::string path = url.substr(url.find(':') + 1);
    if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db_));
    sqlite3_busy_timeout(db_, 10'000);
  }
  ~ForeignSqlite() override { sqlite3_close(db_); }

  void run(const std::string& sql) override {
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(db_));
    }
  }
  AdoptedTx adopt() override { return sqlite::adopt(db_); }

 private:
  sqlite3* db_ = nullptr;
};

#if defined(POSTRIDER_WITH_POSTGRES)
class ForeignPostgres final : public ForeignConnection {
 public:
  explicit ForeignPostgres(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection_));
  }
  ~ForeignPostgres() override { PQfinish(connection_); }

  void run(const std::string& sql) override {
    PGresult* result = PQexec(connection_, sql.c_str());
    const ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      throw std::runtime_error(PQerrorMessage(connection_));
    }
  }
  AdoptedTx adopt() override { return postgres::adopt(connection_); }

 private:
  PGconn* connection_;
};
#endif

#if defined(POSTRIDER_WITH_MARIADB)
class ForeignMariadb final : public ForeignConnection {
 public:
  explicit ForeignMariadb(const std::string& url) : connection_(mysql_init(nullptr)) {
    static const std::regex parts("[a-z]+://([^:@/]*)(?::([^@/]*))?@([^:/]*)(?::([0-9]+))?/([^?]*).*");
    std::smatch match;
    if (!std::regex_match(url, match, parts)) throw std::runtime_error("cannot take apart " + url);
    const unsigned port = match[4].matched ? static_cast<unsigned>(std::stoul(match[4])) : 3306;
    if (mysql_real_connect(connection_, match[3].str().c_str(), match[1].str().c_str(),
                           match[2].str().c_str(), match[5].str().c_str(), port, nullptr, 0) == nullptr) {
      throw std::runtime_error(mysql_error(connection_));
    }
    mysql_set_character_set(connection_, "utf8mb4");
  }
  ~ForeignMariadb() override { mysql_close(connection_); }

  void run(const std::string& sql) override {
    if (mysql_real_query(connection_, sql.data(), sql.size()) != 0)
      throw std::runtime_error(mysql_error(connection_));
  }
  AdoptedTx adopt() override { return mariadb::adopt(connection_); }

 private:
  MYSQL* connection_;
};
#endif

}  // namespace

std::unique_ptr<ForeignConnection> ForeignConnection::open(BackendKind kind, const std::string& url) {
  switch (kind) {
    case BackendKind::sqlite:
      return std::make_unique<ForeignSqlite>(url);
    case BackendKind::postgres:
#if defined(POSTRIDER_WITH_POSTGRES)
      return std::make_unique<ForeignPostgres>(url);
#else
      break;
#endif
    case BackendKind::mariadb:
#if defined(POSTRIDER_WITH_MARIADB)
      return std::make_unique<ForeignMariadb>(url);
#else
      break;
#endif
  }
  throw std::runtime_error("this build has no " + std::string(to_string(kind)));
}

}  // namespace postrider::test
