// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "app/cli/admin_options.hpp"
#include "postrider/value.hpp"

struct sqlite3;

namespace postrider::cli {

/// Questions to a database that no store has a verb for. Reads only, holds nobody up (SQLite: beside the
/// writer), and for a bounded time. Used by one thread.
class Inspector {
 public:
  /// `database` must outlive it. `at_most` is for each question.
  Inspector(const Database& database, Duration at_most);
  ~Inspector();
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  /// One SELECT with `?` for parameters. Throws Error(timeout) when it takes too long.
  [[nodiscard]] Rows select(const std::string& sql, std::span<const Value> params = {});
  /// The first cell of the first row; empty for NULL and for no row.
  [[nodiscard]] std::string text(const std::string& sql);
  [[nodiscard]] std::int64_t number(const std::string& sql);

  [[nodiscard]] BackendKind kind() const { return database_.storage->kind(); }
  [[nodiscard]] std::string table(std::string_view name) const { return database_.table(name); }
  /// The column, a time, as microseconds since 1970.
  [[nodiscard]] std::string micros(std::string_view column) const;
  /// The database's now in microseconds.
  [[nodiscard]] std::string now_micros() const;

 private:
  struct Closer {
    void operator()(sqlite3* db) const noexcept;
  };
  [[nodiscard]] Rows select_sqlite(const std::string& sql, std::span<const Value> params);
  [[nodiscard]] Rows select_server(const std::string& sql, std::span<const Value> params);

  const Database& database_;
  const Duration at_most_;
  SteadyPoint deadline_{};
  std::unique_ptr<sqlite3, Closer> sqlite_;
};

}  // namespace postrider::cli
