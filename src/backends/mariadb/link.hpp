// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mysql.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "postrider/error.hpp"
#include "postrider/value.hpp"

namespace postrider::mariadb {

/// One row of a result, valid until the next one is fetched.
class RowView {
 public:
  struct Cell {
    std::string_view text{};
    bool null = true;
  };
  explicit RowView(std::span<const Cell> cells) noexcept : cells_(cells) {}
  [[nodiscard]] std::size_t size() const noexcept { return cells_.size(); }
  [[nodiscard]] bool is_null(std::size_t column) const { return cells_[column].null; }
  /// Empty when NULL.
  [[nodiscard]] std::string_view text(std::size_t column) const { return cells_[column].text; }
  /// Throws Error(schema) when the column holds no number.
  [[nodiscard]] std::int64_t integer(std::size_t column) const;

 private:
  std::span<const Cell> cells_;
};

/// Statements on a connection, whoever owns that. Used by one thread at a time. Prepared statements are kept
/// and used again, the least recently used is closed when there are too many.
class Link {
 public:
  using OnRow = std::function<void(const RowView&)>;

  /// Borrows `mysql`, which must outlive the link or be closed by mysql_close (which detaches its
  /// statements). `name` is for messages.
  Link(MYSQL* mysql, std::string name, std::size_t statements_kept);

  [[nodiscard]] MYSQL* raw() const noexcept { return mysql_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// False once the connection is known to be broken.
  [[nodiscard]] bool alive() const noexcept { return alive_; }
  /// By the server's last answer; not after it has rolled the transaction back by itself.
  [[nodiscard]] bool in_transaction() const noexcept;
  /// The server rolled the transaction back after a deadlock (or, if so configured, after a lock timeout). It
  /// would let further statements begin another one unnoticed, and commit that half.
  [[nodiscard]] bool rolled_back() const noexcept { return rolled_back_; }
  /// How many were run since `begin`.
  [[nodiscard]] std::size_t statements() const noexcept { return statements_; }
  /// Can take many rows of parameters in one round trip (MariaDB 10.2+).
  [[nodiscard]] bool takes_bulk() const noexcept { return bulk_; }

  /// From now on one row per round trip, as with MySQL; lets tests go that way.
  void forgo_bulk() noexcept { bulk_ = false; }

  /// What innodb_lock_wait_timeout is when nobody has changed it for a moment: an expression of SQL.
  [[nodiscard]] const std::string& usual_lock_wait() const noexcept { return usual_lock_wait_; }
  void set_usual_lock_wait(std::string expression) { usual_lock_wait_ = std::move(expression); }

  /// One statement without parameters by the text protocol; results are thrown away.
  void command(const char* sql);
  void begin();
  void rollback();
  /// COMMIT; a connection that breaks leaves it in doubt.
  void commit();

  /// Runs a statement and calls `on_row` for each row of its (first) result; it must not use this link.
  /// Returns the number of affected rows.
  std::uint64_t run(std::string_view sql, std::span<const Value> params, const OnRow& on_row);
  /// The number that the last statement gave to the first row it inserted, or to LAST_INSERT_ID(expression).
  [[nodiscard]] std::int64_t insert_id() const noexcept { return insert_id_; }
  /// Runs a statement that returns nothing once per row of parameters (`values` holds them row after row), in
  /// the given order: in one round trip where the server can. In a column all values are numbers, or all are
  /// texts and blobs, or NULL. Not atomic: belongs into a transaction. Returns the number of affected rows.
  std::uint64_t run_many(std::string_view sql, std::size_t columns, std::span<const Value> values);
  /// Runs a statement as a user wrote it, by the text protocol if the server cannot prepare its kind.
  Rows run_any(std::string_view sql, std::span<const Value> params);

 private:
  struct CloseStatement {
    void operator()(MYSQL_STMT* statement) const noexcept { mysql_stmt_close(statement); }
  };
  using Statement = std::unique_ptr<MYSQL_STMT, CloseStatement>;
  struct Kept {
    std::string sql;
    Statement statement;
  };

  /// Null when the server does not prepare this kind of statement.
  [[nodiscard]] MYSQL_STMT* prepared_if_possible(std::string_view sql);
  [[nodiscard]] MYSQL_STMT& prepared(std::string_view sql);
  void forget(std::string_view sql) noexcept;
  void bind(MYSQL_STMT& statement, std::string_view sql, std::span<const Value> params);
  std::uint64_t execute(MYSQL_STMT& statement, std::string_view sql);
  void fetch(MYSQL_STMT& statement, std::string_view sql, const OnRow& on_row);
  std::uint64_t run_bulk(MYSQL_STMT& statement, std::string_view sql, std::size_t columns,
                         std::span<const Value> values);
  Rows run_text(std::string_view sql);
  /// Throws the error of a failed call. Also learns whether the transaction survived it.
  [[noreturn]] void fail(MYSQL_STMT& statement, std::string_view sql);
  [[noreturn]] void fail(std::string_view doing);
  void note(const Error& error, unsigned number) noexcept;
  [[nodiscard]] bool timeout_rolls_back() noexcept;

  MYSQL* mysql_;
  std::string name_;
  std::size_t statements_kept_;
  std::string usual_lock_wait_ = "DEFAULT";
  bool bulk_ = false;
  bool alive_ = true;
  bool rolled_back_ = false;
  std::size_t statements_ = 0;
  std::int64_t insert_id_ = 0;
  std::list<Kept> kept_;                                                    // most recently used first
  std::unordered_map<std::string_view, std::list<Kept>::iterator> by_sql_;  // keys live in kept_
};

}  // namespace postrider::mariadb
