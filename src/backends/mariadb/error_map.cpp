// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/error_map.hpp"

#include <string>

#include "core/utf8.hpp"
#include "storage/migrator.hpp"

namespace postrider::mariadb {
namespace {

struct Verdict {
  ErrorCode code = ErrorCode::database;
  bool retryable = false;
  bool connection_lost = false;
  std::string_view hint{};
};

bool says(std::string_view message, std::string_view part) {
  return message.find(part) != std::string_view::npos;
}

/// The operating system's ENOSPC inside another message: "Got error 28 from storage engine", "(Errcode: 28
/// …)".
bool out_of_space(std::string_view message) {
  return says(message, "rrno: 28 ") || says(message, "rrcode: 28 ") || says(message, "error 28 ") ||
         says(message, "No space left on device");
}

/// Users have tables too, and make mistakes with them.
Verdict missing(bool ours) {
  if (!ours) return {};
  return {.code = ErrorCode::schema, .hint = migrate_hint};
}

// Numbers rather than the headers' names: MySQL's are not in MariaDB's headers.
Verdict judge(const Failure& failure) {
  switch (failure.number) {
    case 1062:  // ER_DUP_ENTRY
    case 1586:  // ER_DUP_ENTRY_WITH_KEY_NAME
      return {.code = ErrorCode::conflict};
    case 1020:  // ER_CHECKREAD: innodb_snapshot_isolation
    case 1205:  // ER_LOCK_WAIT_TIMEOUT
    case 1213:  // ER_LOCK_DEADLOCK
    case 3572:  // MySQL: ER_LOCK_NOWAIT
      return {.code = ErrorCode::contention, .retryable = true, .hint = "run the whole transaction again"};
    case 1021:  // ER_DISK_FULL
    case 1114:  // ER_RECORD_FILE_FULL
      return {.code = ErrorCode::storage_full, .retryable = true, .hint = "make room on the database server"};
    case 1146:  // ER_NO_SUCH_TABLE
      return missing(names_our_table(failure.message));
    case 1054:  // ER_BAD_FIELD_ERROR, which does not name the table
      return missing(names_our_table(failure.statement));
    case 2002:  // CR_CONNECTION_ERROR (socket)
    case 2003:  // CR_CONN_HOST_ERROR
    case 2005:  // CR_UNKNOWN_HOST: name servers have bad moments
      return {.code = ErrorCode::unavailable,
              .retryable = true,
              .connection_lost = true,
              .hint = "check host and port (or socket) of the URL, and that the server runs"};
    case 2006:  // CR_SERVER_GONE_ERROR
    case 2012:  // CR_SERVER_HANDSHAKE_ERR
    case 2013:  // CR_SERVER_LOST
    case 2055:  // CR_SERVER_LOST_EXTENDED
    case 1053:  // ER_SERVER_SHUTDOWN
    case 1077:  // ER_NORMAL_SHUTDOWN
    case 1079:  // ER_SHUTDOWN_COMPLETE
    case 1080:  // ER_FORCING_CLOSE
    case 1152:  // ER_ABORTING_CONNECTION
    case 1158:  // ER_NET_READ_ERROR
    case 1159:  // ER_NET_READ_INTERRUPTED
    case 1160:  // ER_NET_ERROR_ON_WRITE
    case 1161:  // ER_NET_WRITE_INTERRUPTED
    case 1184:  // ER_NEW_ABORTING_CONNECTION
    case 1927:  // ER_CONNECTION_KILLED
    case 3169:  // MySQL: ER_SESSION_WAS_KILLED
    case 4031:  // MySQL: ER_CLIENT_INTERACTION_TIMEOUT
      return {.code = ErrorCode::unavailable, .retryable = true, .connection_lost = true};
    case 1040:  // ER_CON_COUNT_ERROR
    case 1203:  // ER_TOO_MANY_USER_CONNECTIONS
    case 1226:  // ER_USER_LIMIT_REACHED
      return {.code = ErrorCode::unavailable,
              .retryable = true,
              .connection_lost = true,
              .hint =
                  "lower pool-size of [storage] (StorageOptions::pool_size) or raise the server's limit on "
                  "connections"};
    case 1045:  // ER_ACCESS_DENIED_ERROR
    case 1698:  // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
      return {.code = ErrorCode::unavailable,
              .hint = "check user and password; in a URL @ : / ? # % are written %40 %3A %2F %3F %23 %25"};
    case 1044:  // ER_DBACCESS_DENIED_ERROR
    case 1142:  // ER_TABLEACCESS_DENIED_ERROR
    case 1227:  // ER_SPECIFIC_ACCESS_DENIED_ERROR
      return {.code = ErrorCode::database, .hint = "grant the user its rights on the database"};
    case 1049:  // ER_BAD_DB_ERROR
      return {.code = ErrorCode::unavailable, .hint = "create the database, or correct its name in the URL"};
    case 1130:  // ER_HOST_NOT_PRIVILEGED
      return {.code = ErrorCode::unavailable,
              .hint = "allow this host to connect: CREATE USER 'name'@'host'"};
    case 2026:  // CR_SSL_CONNECTION_ERROR
      return {.code = ErrorCode::unavailable,
              .connection_lost = true,
              .hint = "check ssl_mode and ssl_ca of the URL"};
    case 1153:  // ER_NET_PACKET_TOO_LARGE
      return {.code = ErrorCode::database,
              .connection_lost = true,
              .hint = "raise max_allowed_packet on the server to 16M or more"};
    case 1290:  // ER_OPTION_PREVENTS_STATEMENT
    case 1836:  // MySQL: ER_READ_ONLY_MODE
      if (says(failure.message, "read-only") || says(failure.message, "read only")) {
        return {.code = ErrorCode::unavailable,
                .retryable = true,
                .hint = "connect to the server that takes writes"};
      }
      return {};
    case 1317:  // ER_QUERY_INTERRUPTED
    case 1969:  // ER_STATEMENT_TIMEOUT
    case 3024:  // MySQL: ER_QUERY_TIMEOUT
      return {.code = ErrorCode::timeout, .retryable = true};
    case 1665:  // ER_BINLOG_STMT_MODE_AND_ROW_ENGINE
      return {.code = ErrorCode::unsupported, .hint = "set binlog_format to MIXED or ROW on the server"};
    default:
      if (out_of_space(failure.message)) {
        return {
            .code = ErrorCode::storage_full, .retryable = true, .hint = "make room on the database server"};
      }
      return {};
  }
}

Error make(const Failure& failure, std::string_view doing, bool committing) {
  const Verdict verdict = judge(failure);
  const bool in_doubt = committing && verdict.connection_lost;
  // A foreign session may speak any character set.
  std::string why = utf8_repaired(failure.message);
  why += " (error " + std::to_string(failure.number) + ")";
  return Error(verdict.code,
               {.sqlstate = std::string(failure.sqlstate == "00000" ? std::string_view{} : failure.sqlstate),
                .retryable = verdict.retryable && !in_doubt,
                .in_doubt = in_doubt,
                .connection_lost = verdict.connection_lost},
               doing, why,
               in_doubt
                   ? std::string_view("the transaction may have been committed: look before you repeat it")
                   : verdict.hint);
}

}  // namespace

Error to_error(const Failure& failure, std::string_view doing) {
  return make(failure, doing, false);
}

Error to_commit_error(const Failure& failure, std::string_view doing) {
  return make(failure, doing, true);
}

}  // namespace postrider::mariadb
