// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/errors.hpp"

#include "storage/migrator.hpp"

namespace postrider::postgres {

namespace {

std::string one_line(const char* text) {
  std::string line = text == nullptr ? "" : text;
  while (!line.empty() && (line.back() == '\n' || line.back() == '.')) line.pop_back();
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

struct Meaning {
  ErrorCode code = ErrorCode::database;
  bool retryable = false;
  bool connection_lost = false;
  std::string_view hint{};
};

Meaning meaning_of(std::string_view state, std::string_view message) noexcept {
  const std::string_view group = state.substr(0, 2);
  if (state == "23505") return {ErrorCode::conflict};
  if (state == "40001" || state == "40P01" || state == "55P03") {
    return {ErrorCode::contention, true, false, "run the transaction again"};
  }
  if (state == "53100") return {ErrorCode::storage_full, true, false, "make room on the server's disk"};
  if (state == "53300") {
    return {ErrorCode::unavailable, true, true, "lower pool_size or raise max_connections on the server"};
  }
  // Users have tables too, and make mistakes with them.
  if (state == "42P01" && names_our_table(message)) return {ErrorCode::schema, false, false, migrate_hint};
  if (state == "42P18") {
    return {ErrorCode::invalid_argument, false, false, "tell its type with a cast: ?::text, ?::bigint"};
  }
  if (state == "08P01") return {};  // somebody broke the protocol's rules; the connection still stands
  if (state == "57014") return {ErrorCode::timeout, true};
  if (state == "57P01" || state == "57P02" || state == "57P03" || state == "57P05" || group == "08") {
    return {ErrorCode::unavailable, true, true};
  }
  if (state == "25P02") {
    return {ErrorCode::database, false, false,
            "an earlier statement of this transaction failed; roll it back"};
  }
  if (state == "25006") return {ErrorCode::unavailable, true, false, "connect to the primary server"};
  if (state == "26000" || state == "42P05") {
    // A pooler moved us to another server connection. The storage goes on without named statements.
    return {ErrorCode::contention, true, false, "run the transaction again"};
  }
  return {};
}

}  // namespace

Failure failure_of(const PGresult* result, const PGconn* connection) {
  Failure failure;
  if (result != nullptr) {
    failure.sqlstate = one_line(PQresultErrorField(result, PG_DIAG_SQLSTATE));
    failure.message = one_line(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
    failure.detail = one_line(PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL));
    if (failure.message.empty()) failure.message = one_line(PQresultErrorMessage(result));
  }
  if (failure.message.empty()) failure.message = one_line(PQerrorMessage(connection));
  failure.connection_lost = PQstatus(connection) == CONNECTION_BAD;
  return failure;
}

Error make_error(std::string_view what, const Failure& failure) {
  Meaning meaning = meaning_of(failure.sqlstate, failure.message);
  if (failure.connection_lost && !meaning.connection_lost) {
    meaning = {ErrorCode::unavailable, true, true};
  }
  std::string_view hint = meaning.hint;
  if (failure.in_doubt) hint = "the transaction may have been committed; look before you repeat it";
  std::string why = failure.message.empty() ? "the connection was lost" : failure.message;
  if (!failure.detail.empty()) why += " (" + failure.detail + ")";
  return Error(meaning.code,
               {.sqlstate = failure.sqlstate,
                .retryable = meaning.retryable && !failure.in_doubt,
                .in_doubt = failure.in_doubt,
                .connection_lost = meaning.connection_lost},
               what, why, hint);
}

}  // namespace postrider::postgres
