// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/connection.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "backends/mariadb/error_map.hpp"

namespace postrider::mariadb {
namespace {

constexpr std::size_t statements_kept = 128;
constexpr std::chrono::seconds forever{0};

/// The server's own setting, but less than we wait for its answer: then it is the server who says that a lock
/// was not to be had, and the connection lives.
std::string lock_wait(const ConnectSettings& settings) {
  const std::int64_t limit = settings.read_timeout.value_or(forever).count();
  if (limit == 0) return "DEFAULT";
  return "LEAST(@@GLOBAL.innodb_lock_wait_timeout, " +
         std::to_string(std::max<std::int64_t>(1, limit - std::max<std::int64_t>(1, limit / 10))) + ")";
}

void init_client_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (mysql_server_init(0, nullptr, nullptr) != 0) {
      throw Error(ErrorCode::unsupported, "cannot use MariaDB",
                  "the client library could not be initialised");
    }
  });
}

template <class T>
void set_option(MYSQL* mysql, mysql_option option, const T* value) {
  if (mysql_options(mysql, option, value) != 0) {
    throw Error(ErrorCode::unsupported, "cannot set up a MariaDB connection",
                "the client library refused option " + std::to_string(option));
  }
}

void configure(MYSQL* mysql, const ConnectSettings& settings) {
  const my_bool no = 0;
  const my_bool yes = 1;
  const unsigned local_infile = 0;  // a server must not be able to read this machine's files
  const unsigned connect_timeout =
      static_cast<unsigned>(std::max<std::int64_t>(1, settings.connect_timeout.count()));
  const unsigned read_timeout = static_cast<unsigned>(settings.read_timeout.value_or(forever).count());
  const unsigned write_timeout = static_cast<unsigned>(settings.write_timeout.value_or(forever).count());
  set_option(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect_timeout);
  set_option(mysql, MYSQL_OPT_READ_TIMEOUT, &read_timeout);
  set_option(mysql, MYSQL_OPT_WRITE_TIMEOUT, &write_timeout);
  set_option(mysql, MYSQL_OPT_RECONNECT, &no);  // a silent reconnect would leave half a transaction behind
  set_option(mysql, MYSQL_OPT_LOCAL_INFILE, &local_infile);
  set_option(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  // "localhost" would otherwise mean a socket whose path the library guesses.
  const unsigned protocol = settings.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
  set_option(mysql, MYSQL_OPT_PROTOCOL, &protocol);
  if (settings.ssl != SslMode::off) {
    set_option(mysql, MYSQL_OPT_SSL_ENFORCE, &yes);
    set_option(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, settings.ssl == SslMode::verify ? &yes : &no);
    if (!settings.ssl_ca.empty()) set_option(mysql, MYSQL_OPT_SSL_CA, settings.ssl_ca.c_str());
  }
}

void check_version(MYSQL* mysql, const std::string& name) {
  const bool maria = mariadb_connection(mysql) != 0;
  if (mysql_get_server_version(mysql) >= (maria ? 100600UL : 80017UL)) return;
  throw Error(ErrorCode::unsupported, "cannot use " + name,
              "the server is " + std::string(maria ? "MariaDB " : "MySQL ") + mysql_get_server_info(mysql),
              "MariaDB 10.6 or MySQL 8.0.17 are the oldest that will do");
}

}  // namespace

Connection::Connection(Handle mysql, std::string name)
    : mysql_(std::move(mysql)), link_(mysql_.get(), std::move(name), statements_kept) {}

std::unique_ptr<Connection> Connection::open(const ConnectSettings& settings) {
  init_client_library();
  Handle mysql(mysql_init(nullptr));
  if (mysql == nullptr) throw std::bad_alloc();
  configure(mysql.get(), settings);
  const std::string name = settings.name();
  if (mysql_real_connect(mysql.get(), settings.socket.empty() ? settings.host.c_str() : nullptr,
                         settings.user.c_str(), settings.password.c_str(), settings.database.c_str(),
                         settings.port, settings.socket.empty() ? nullptr : settings.socket.c_str(),
                         CLIENT_FOUND_ROWS) == nullptr) {
    throw to_error({.number = mysql_errno(mysql.get()),
                    .sqlstate = mysql_sqlstate(mysql.get()),
                    .message = mysql_error(mysql.get())},
                   "cannot connect to " + name);
  }
  check_version(mysql.get(), name);
  std::unique_ptr<Connection> connection(new Connection(std::move(mysql), name));
  const std::string lock_setting = lock_wait(settings);
  connection->link_.set_usual_lock_wait(lock_setting);
  connection->link_.command(
      ("SET SESSION time_zone = '+00:00', autocommit = 1, "
       "sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', "
       "innodb_lock_wait_timeout = " +
       lock_setting)
          .c_str());
  // Locks on the rows that were found, none on the gaps between them.
  connection->link_.command("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  return connection;
}

bool Connection::ping() noexcept {
  return link_.alive() && mysql_ping(mysql_.get()) == 0;
}

}  // namespace postrider::mariadb
