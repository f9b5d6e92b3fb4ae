// SPDX-License-Identifier: Apache-2.0
// Our own statements inside a user's transaction, whatever its connection is like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backends/postgres/session.hpp"
#include "postrider/transaction.hpp"

namespace postrider::postgres {

/// Takes the same calls as Params, and makes text of them, for transactions that we reach through SQL text
/// alone (pqxx).
class TextBinder {
 public:
  TextBinder& null();
  TextBinder& text(std::string_view value);
  TextBinder& int8(std::int64_t value);
  TextBinder& timestamp(std::optional<TimePoint> value);

  void begin_array(Oid element_type, std::size_t count);
  void element(std::string_view bytes);
  void element_null();
  void element_int2(std::int16_t value) { element_int8(value); }
  void element_int4(std::int32_t value) { element_int8(value); }
  void element_int8(std::int64_t value);
  void element_timestamp(TimePoint value);
  void end_array();

  /// Valid as long as this object is not changed.
  [[nodiscard]] std::vector<Value> values() const;

 private:
  void separate();

  std::vector<std::optional<std::string>> values_;
  std::string array_;
  bool bytes_ = false;  // the elements of the array are bytea
};

/// The rows of a statement that ran through either way.
class TxRows {
 public:
  explicit TxRows(Result result) : rows_(std::move(result)) {}
  explicit TxRows(Rows rows) : rows_(std::move(rows)) {}

  [[nodiscard]] std::size_t size() const;
  /// Of a column of type bigint.
  [[nodiscard]] std::int64_t int8(std::size_t row, int column) const;
  [[nodiscard]] std::string_view text(std::size_t row, int column) const;

 private:
  std::variant<Result, Rows> rows_;
};

/// Throws Error(wrong_storage) unless the transaction is one of PostgreSQL's.
void require_postgres(const Tx& tx, std::string_view what);

/// Runs the statement in the transaction; `bind` is called with a Params or a TextBinder. Errors begin with
/// `what`.
template <class Bind>
TxRows run_in(Tx& tx, const Statement& statement, std::string_view what, const Bind& bind) {
  if (auto* session = dynamic_cast<NativeSession*>(&tx.session())) {
    thread_local Params params;  // keeps its memory for the thread's next batch
    params.clear();
    bind(params);
    return TxRows(session->run(statement, params, what));
  }
  TextBinder binder;
  bind(binder);
  return TxRows(tx.session().execute(statement.sql, binder.values()));
}

}  // namespace postrider::postgres
