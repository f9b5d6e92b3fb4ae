// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/filter_list.hpp"
#include "postrider/transaction.hpp"
#include "postrider/value.hpp"

namespace postrider {

/// The few words in which the databases differ for rare verbs. Times travel as microseconds since 1970.
struct SqlDialect {
  BackendKind kind;
  /// What stands before a table's name, safe to paste: "postrider." or "postrider_".
  std::string table_prefix;
  /// Runs one statement (with `?` placeholders) in a transaction of its own. Those that only read begin with
  /// "select".
  std::function<Rows(std::string_view sql, std::span<const Value> params)> run;
  /// The same for a select that is asked for many times a second, and comes in few shapes: planned once,
  /// where planning costs more than running it. Null: there is no difference.
  std::function<Rows(std::string_view sql, std::span<const Value> params)> run_often{};
  /// As Storage::begin, for verbs of several statements.
  std::function<Transaction()> begin;
  /// Microseconds → the column's type, around a placeholder or expression: e.g. "(timestamptz 'epoch' + {} *
  /// interval '1 microsecond')".
  std::string from_micros;
  /// The column → microseconds: e.g. "(extract(epoch from {}) * 1000000)::bigint".
  std::string to_micros;
  /// The database's now as the column's type; a placeholder is bound instead when the storage has a clock of
  /// its own.
  std::string now;
  Clock* clock = nullptr;
  /// Reads a binary column as lower-case hex text: e.g. "encode({}, 'hex')", "lower(hex({}))".
  std::string hex;
};

/// A number with a type of its own (Position, LogSeq …) as a column has it.
template <class Number>
requires std::is_enum_v<Number>
[[nodiscard]] constexpr std::int64_t plain(Number number) noexcept {
  return static_cast<std::int64_t>(number);
}

/// `pattern` with its {} replaced.
[[nodiscard]] std::string around(std::string_view pattern, std::string_view inner);

/// A statement and its parameters, put together from left to right. Text is borrowed: it must live until the
/// statement has run.
class SqlQuery {
 public:
  explicit SqlQuery(const SqlDialect& dialect) : dialect_(dialect) {}

  SqlQuery& sql(std::string_view text) {
    sql_ += text;
    return *this;
  }
  SqlQuery& table(std::string_view name) { return sql(dialect_.table_prefix).sql(name); }
  SqlQuery& bind(Value value) {
    params_.push_back(value);
    return sql("?");
  }
  SqlQuery& bind_time(TimePoint time);
  SqlQuery& bind_limit(std::size_t limit);
  /// The column as microseconds.
  SqlQuery& micros(std::string_view column) { return sql(around(dialect_.to_micros, column)); }
  SqlQuery& now();
  SqlQuery& now_plus(Duration span);
  SqlQuery& now_minus(Duration age) { return now_plus(-age); }
  /// " and <column> = ?" when there is a value.
  SqlQuery& and_equals(std::string_view column, const std::optional<std::string>& value);
  /// " and <column> in (?, …)". In an empty list there is nothing.
  template <class T, class ToValue>
  SqlQuery& and_in(std::string_view column, const std::vector<T>& values, ToValue to_value) {
    if (values.empty()) return sql(" and 1 = 0");
    sql(" and ").sql(column).sql(" in (");
    for (std::size_t i = 0; i < values.size(); ++i) (i == 0 ? *this : sql(", ")).bind(to_value(values[i]));
    return sql(")");
  }
  /// The same for a list of a user's filter; nothing when that is not set, which means all.
  template <class T, class ToValue>
  SqlQuery& and_in(std::string_view column, const FilterList<T>& values, ToValue to_value) {
    return values.is_set() ? and_in(column, values.values(), to_value) : *this;
  }
  /// "<position of the very bytes in the column> > 0": LIKE would need escaping, and its idea of upper and
  /// lower case differs.
  SqlQuery& contains(std::string_view column, std::string_view needle);

  Rows run() { return dialect_.run(sql_, params_); }
  Rows run_often() { return dialect_.run_often ? dialect_.run_often(sql_, params_) : run(); }
  Rows run(Tx& tx) { return tx.run(sql_, params_); }

 private:
  const SqlDialect& dialect_;
  std::string sql_;
  std::vector<Value> params_;
};

/// A cell as a number, 0 for NULL. Throws Error(database) when it is none.
[[nodiscard]] std::int64_t number(const Rows::Cell& cell);
/// Of a column read with `SqlQuery::micros`.
[[nodiscard]] TimePoint time_of(const Rows::Cell& cell);
/// Empty for NULL.
[[nodiscard]] std::string text(const Rows::Cell& cell);
/// PostgreSQL prints t and f, the others 1 and 0.
[[nodiscard]] bool flag(const Rows::Cell& cell);
/// Of a column read with `SqlDialect::hex`.
[[nodiscard]] std::string bytes_from_hex(std::string_view hex);

}  // namespace postrider
