// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/link.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "backends/mariadb/error_map.hpp"
#include "core/utf8.hpp"
#include "core/wording.hpp"
#include "storage/placeholders.hpp"

namespace postrider::mariadb {
namespace {

constexpr unsigned lock_timeout = 1205;             // ER_LOCK_WAIT_TIMEOUT
constexpr unsigned deadlock = 1213;                 // ER_LOCK_DEADLOCK
constexpr unsigned unsupported_in_prepared = 1295;  // ER_UNSUPPORTED_PS
constexpr std::size_t first_buffer = 512;           // per column; longer values are fetched again in full

bool server_takes_bulk(MYSQL* mysql) noexcept {
  unsigned long basic = 0;
  unsigned long extended = 0;
  if (mariadb_get_infov(mysql, MARIADB_CONNECTION_SERVER_CAPABILITIES, &basic) != 0 ||
      mariadb_get_infov(mysql, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &extended) != 0) {
    return false;
  }
  // The bit that says "MySQL" is set by servers that do not know the extended ones.
  return (basic & CLIENT_MYSQL) == 0 && (extended & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32)) != 0;
}

/// Fills in a parameter. The client library only reads through `buffer`, although it is not const.
struct Binder {
  MYSQL_BIND& bind;
  void operator()(std::monostate) const { bind.buffer_type = MYSQL_TYPE_NULL; }
  void operator()(const std::int64_t& v) const {
    bind.buffer_type = MYSQL_TYPE_LONGLONG;
    bind.buffer = const_cast<std::int64_t*>(&v);
  }
  void operator()(const double& v) const {
    bind.buffer_type = MYSQL_TYPE_DOUBLE;
    bind.buffer = const_cast<double*>(&v);
  }
  void operator()(const std::string_view& v) const { bytes(MYSQL_TYPE_STRING, v); }
  void operator()(const Blob& v) const { bytes(MYSQL_TYPE_LONG_BLOB, v.bytes); }

 private:
  void bytes(enum_field_types type, std::string_view v) const {
    bind.buffer_type = type;
    bind.buffer = const_cast<char*>(v.empty() ? "" : v.data());
    bind.buffer_length = static_cast<unsigned long>(v.size());  // counts as the length when none is given
  }
};

/// One column of parameters, in the arrays that the bulk protocol wants.
struct BulkColumn {
  std::vector<std::int64_t> numbers;
  std::vector<char*> texts;
  std::vector<unsigned long> lengths;
  std::vector<char> indicators;
  enum_field_types type = MYSQL_TYPE_NULL;

  void add(const Value& value) {
    const auto& v = value.get();
    std::int64_t number = 0;
    std::string_view text{};
    char indicator = STMT_INDICATOR_NONE;
    if (const auto* n = std::get_if<std::int64_t>(&v)) {
      number = *n;
      type = MYSQL_TYPE_LONGLONG;
    } else if (const auto* s = std::get_if<std::string_view>(&v)) {
      text = *s;
      type = MYSQL_TYPE_STRING;
    } else if (const auto* b = std::get_if<Blob>(&v)) {
      text = b->bytes;
      type = MYSQL_TYPE_LONG_BLOB;
    } else {
      indicator = STMT_INDICATOR_NULL;
    }
    numbers.push_back(number);
    texts.push_back(const_cast<char*>(text.empty() ? "" : text.data()));
    lengths.push_back(static_cast<unsigned long>(text.size()));
    indicators.push_back(indicator);
  }

  void bind_to(MYSQL_BIND& bind) {
    bind.u.indicator = indicators.data();
    if (type == MYSQL_TYPE_STRING || type == MYSQL_TYPE_LONG_BLOB) {
      bind.buffer_type = type;
      bind.buffer = static_cast<void*>(texts.data());
      bind.length = lengths.data();
    } else {  // numbers, or nothing but NULL
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.buffer = numbers.data();
    }
  }
};

}  // namespace

std::int64_t RowView::integer(std::size_t column) const {
  const std::string_view digits = text(column);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || code != std::errc{} || end != digits.data() + digits.size()) {
    throw Error(ErrorCode::schema, "cannot read a row",
                "'" + utf8_repaired(digits) + "' in column " + std::to_string(column) + " is no number");
  }
  return value;
}

Link::Link(MYSQL* mysql, std::string name, std::size_t statements_kept)
    : mysql_(mysql),
      name_(std::move(name)),
      statements_kept_(statements_kept),
      bulk_(server_takes_bulk(mysql)) {}

bool Link::in_transaction() const noexcept {
  unsigned status = 0;
  return alive_ && !rolled_back_ &&
         mariadb_get_infov(mysql_, MARIADB_CONNECTION_SERVER_STATUS, &status) == 0 &&
         ((status & SERVER_STATUS_IN_TRANS) != 0 || (status & SERVER_STATUS_AUTOCOMMIT) == 0);
}

bool Link::timeout_rolls_back() noexcept {
  if (mysql_query(mysql_, "SELECT @@innodb_rollback_on_timeout") != 0) return true;
  const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> result(mysql_store_result(mysql_),
                                                                        &mysql_free_result);
  const MYSQL_ROW row = result == nullptr ? nullptr : mysql_fetch_row(result.get());
  return row == nullptr || row[0] == nullptr || std::string_view(row[0]) != "0";
}

void Link::note(const Error& error, unsigned number) noexcept {
  // An error packet does not say whether the transaction lives. A failed DDL statement may have ended it,
  // which the answer to a ping tells. A deadlock ends it too, but then the server goes on saying that there
  // is one.
  if (error.connection_lost() || mysql_ping(mysql_) != 0) {
    alive_ = false;
  } else if (number == deadlock || (number == lock_timeout && timeout_rolls_back())) {
    rolled_back_ = true;
  }
}

void Link::fail(MYSQL_STMT& statement, std::string_view sql) {
  const unsigned number = mysql_stmt_errno(&statement);
  const Error error = to_error({.number = number,
                                .sqlstate = mysql_stmt_sqlstate(&statement),
                                .message = mysql_stmt_error(&statement),
                                .statement = sql},
                               cannot_run(sql) + " on " + name_);
  mysql_stmt_free_result(&statement);
  note(error, number);
  throw error;
}

void Link::fail(std::string_view doing) {
  const unsigned number = mysql_errno(mysql_);
  const Error error =
      to_error({.number = number, .sqlstate = mysql_sqlstate(mysql_), .message = mysql_error(mysql_)}, doing);
  note(error, number);
  throw error;
}

void Link::command(const char* sql) {
  if (mysql_query(mysql_, sql) != 0) fail(cannot_run(sql) + " on " + name_);
  if (MYSQL_RES* const result = mysql_store_result(mysql_)) mysql_free_result(result);
}

void Link::begin() {
  command("START TRANSACTION");
  rolled_back_ = false;
  statements_ = 0;
}

void Link::rollback() {
  command("ROLLBACK");
  rolled_back_ = false;
}

void Link::commit() {
  if (mysql_query(mysql_, "COMMIT") == 0) return;
  const unsigned number = mysql_errno(mysql_);
  const Error error =
      to_commit_error({.number = number, .sqlstate = mysql_sqlstate(mysql_), .message = mysql_error(mysql_)},
                      "cannot commit on " + name_);
  note(error, number);
  throw error;
}

MYSQL_STMT* Link::prepared_if_possible(std::string_view sql) {
  if (const auto found = by_sql_.find(sql); found != by_sql_.end()) {
    kept_.splice(kept_.begin(), kept_, found->second);
    return found->second->statement.get();
  }
  Statement statement(mysql_stmt_init(mysql_));
  if (statement == nullptr) fail("cannot prepare a statement on " + name_);
  if (mysql_stmt_prepare(statement.get(), sql.data(), static_cast<unsigned long>(sql.size())) != 0) {
    if (mysql_stmt_errno(statement.get()) == unsupported_in_prepared) return nullptr;
    fail(*statement, sql);
  }
  if (kept_.size() >= statements_kept_) forget(kept_.back().sql);
  kept_.push_front({std::string(sql), std::move(statement)});
  by_sql_.emplace(kept_.front().sql, kept_.begin());
  return kept_.front().statement.get();
}

MYSQL_STMT& Link::prepared(std::string_view sql) {
  if (MYSQL_STMT* const statement = prepared_if_possible(sql)) return *statement;
  throw Error(ErrorCode::unsupported, cannot_run(sql) + " on " + name_,
              "the server does not prepare statements of this kind", "write it without parameters");
}

void Link::forget(std::string_view sql) noexcept {
  const auto found = by_sql_.find(sql);
  if (found == by_sql_.end()) return;
  const auto entry = found->second;
  by_sql_.erase(found);
  kept_.erase(entry);
}

void Link::bind(MYSQL_STMT& statement, std::string_view sql, std::span<const Value> params) {
  check_placeholders(sql, mysql_stmt_param_count(&statement), params.size());
  if (params.empty()) return;
  std::vector<MYSQL_BIND> binds(params.size());
  for (std::size_t i = 0; i < params.size(); ++i) std::visit(Binder{binds[i]}, params[i].get());
  if (mysql_stmt_bind_param(&statement, binds.data()) != 0) fail(statement, sql);
}

std::uint64_t Link::execute(MYSQL_STMT& statement, std::string_view sql) {
  ++statements_;
  if (mysql_stmt_execute(&statement) != 0) fail(statement, sql);
  insert_id_ = static_cast<std::int64_t>(mysql_stmt_insert_id(&statement));
  return mysql_stmt_affected_rows(&statement);
}

void Link::fetch(MYSQL_STMT& statement, std::string_view sql, const OnRow& on_row) {
  const std::size_t columns = mysql_stmt_field_count(&statement);
  if (mysql_stmt_store_result(&statement) != 0) {
    // The server gave up among the rows, for instance because of a deadlock. The library would take the rest
    // of them for unread and wait for it when the statement is run again: it must not be.
    struct Forget {
      Link& link;
      std::string_view sql;
      ~Forget() { link.forget(sql); }
    } const forget_it{*this, sql};
    fail(statement, sql);
  }
  struct FreeResult {
    MYSQL_STMT& statement;
    ~FreeResult() { mysql_stmt_free_result(&statement); }
  } const free_result{statement};

  struct Column {
    std::vector<char> buffer = std::vector<char>(first_buffer);
    unsigned long length = 0;
    my_bool null = 0;
    my_bool cut = 0;
  };
  std::vector<Column> fetched(columns);
  std::vector<MYSQL_BIND> binds(columns);
  const auto bind_results = [&] {
    for (std::size_t i = 0; i < columns; ++i) {
      binds[i] = {};
      binds[i].buffer_type = MYSQL_TYPE_STRING;
      binds[i].buffer = fetched[i].buffer.data();
      binds[i].buffer_length = static_cast<unsigned long>(fetched[i].buffer.size());
      binds[i].length = &fetched[i].length;
      binds[i].is_null = &fetched[i].null;
      binds[i].error = &fetched[i].cut;
    }
    if (mysql_stmt_bind_result(&statement, binds.data()) != 0) fail(statement, sql);
  };
  bind_results();

  std::vector<RowView::Cell> cells(columns);
  for (;;) {
    const int code = mysql_stmt_fetch(&statement);
    if (code == MYSQL_NO_DATA) return;
    if (code != 0 && code != MYSQL_DATA_TRUNCATED) fail(statement, sql);
    bool grown = false;
    for (std::size_t i = 0; i < columns; ++i) {
      Column& column = fetched[i];
      if (column.null == 0 && column.length > column.buffer.size()) {
        column.buffer.resize(std::max<std::size_t>(column.length, 2 * column.buffer.size()));
        binds[i].buffer = column.buffer.data();
        binds[i].buffer_length = static_cast<unsigned long>(column.buffer.size());
        if (mysql_stmt_fetch_column(&statement, &binds[i], static_cast<unsigned>(i), 0) != 0)
          fail(statement, sql);
        grown = true;
      }
      cells[i] = {.text = column.null != 0 ? std::string_view{}
                                           : std::string_view(column.buffer.data(), column.length),
                  .null = column.null != 0};
    }
    on_row(RowView(cells));
    if (grown) bind_results();
  }
}

std::uint64_t Link::run(std::string_view sql, std::span<const Value> params, const OnRow& on_row) {
  MYSQL_STMT& statement = prepared(sql);
  bind(statement, sql, params);
  const std::uint64_t affected = execute(statement, sql);
  if (mysql_stmt_field_count(&statement) == 0) return affected;
  fetch(statement, sql, on_row);
  while (mysql_stmt_next_result(&statement) == 0) mysql_stmt_free_result(&statement);  // CALL has several
  return affected;
}

std::uint64_t Link::run_many(std::string_view sql, std::size_t columns, std::span<const Value> values) {
  if (values.empty()) return 0;
  MYSQL_STMT& statement = prepared(sql);
  if (values.size() == columns || !bulk_) {
    std::uint64_t affected = 0;
    for (; !values.empty(); values = values.subspan(columns)) {
      bind(statement, sql, values.first(columns));
      affected += execute(statement, sql);
    }
    return affected;
  }
  return run_bulk(statement, sql, columns, values);
}

std::uint64_t Link::run_bulk(MYSQL_STMT& statement, std::string_view sql, std::size_t columns,
                             std::span<const Value> values) {
  const std::size_t rows = values.size() / columns;
  std::vector<BulkColumn> arrays(columns);
  for (std::size_t i = 0; i < values.size(); ++i) arrays[i % columns].add(values[i]);
  std::vector<MYSQL_BIND> binds(columns);
  for (std::size_t i = 0; i < columns; ++i) arrays[i].bind_to(binds[i]);

  unsigned array_size = static_cast<unsigned>(rows);
  struct OneRowAgain {
    MYSQL_STMT& statement;
    ~OneRowAgain() {
      const unsigned none = 0;
      mysql_stmt_attr_set(&statement, STMT_ATTR_ARRAY_SIZE, &none);
    }
  } const one_row_again{statement};
  if (mysql_stmt_attr_set(&statement, STMT_ATTR_ARRAY_SIZE, &array_size) != 0 ||
      mysql_stmt_bind_param(&statement, binds.data()) != 0) {
    fail(statement, sql);
  }
  return execute(statement, sql);
}

Rows Link::run_any(std::string_view sql, std::span<const Value> params) {
  if (MYSQL_STMT* const statement = prepared_if_possible(sql); statement == nullptr && params.empty()) {
    return run_text(sql);
  }
  Rows rows;
  const std::uint64_t affected = run(sql, params, [&](const RowView& row) {
    std::vector<Rows::Cell>& cells = rows.rows.emplace_back();
    cells.reserve(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      cells.push_back(row.is_null(i) ? Rows::Cell{} : Rows::Cell{std::string(row.text(i))});
    }
  });
  rows.affected = affected == static_cast<std::uint64_t>(-1) ? 0 : static_cast<std::int64_t>(affected);
  return rows;
}

Rows Link::run_text(std::string_view sql) {
  ++statements_;
  if (mysql_real_query(mysql_, sql.data(), static_cast<unsigned long>(sql.size())) != 0) {
    fail(cannot_run(sql) + " on " + name_);
  }
  Rows rows;
  const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> result(mysql_store_result(mysql_),
                                                                        &mysql_free_result);
  if (result == nullptr) {
    if (mysql_field_count(mysql_) != 0) fail(cannot_run(sql) + " on " + name_);
    rows.affected = static_cast<std::int64_t>(mysql_affected_rows(mysql_));
    return rows;
  }
  const unsigned columns = mysql_num_fields(result.get());
  while (MYSQL_ROW row = mysql_fetch_row(result.get())) {
    const unsigned long* const lengths = mysql_fetch_lengths(result.get());
    std::vector<Rows::Cell>& cells = rows.rows.emplace_back();
    for (unsigned i = 0; i < columns; ++i) {
      cells.push_back(row[i] == nullptr ? Rows::Cell{} : Rows::Cell{std::string(row[i], lengths[i])});
    }
  }
  return rows;
}

}  // namespace postrider::mariadb
