// SPDX-License-Identifier: Apache-2.0
// A database for one benchmark: its own schema (or file), migrated, and gone afterwards.
#pragma once

#include <postrider/postrider.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace postrider::bench {

/// The server's URL, from POSTRIDER_TEST_POSTGRES or POSTRIDER_TEST_MARIADB; throws Unavailable when there is
/// none.
[[nodiscard]] std::string server_url(BackendKind kind);

/// For a FROM clause: a row for each number from `first` to `last`, called `n`.
[[nodiscard]] std::string numbers(BackendKind kind, std::size_t first, std::size_t last);
/// For a SELECT from it: the payload of number `n`, as `payload_200` makes it.
[[nodiscard]] std::string numbered_payload(BackendKind kind);
/// An event id made of `n`.
[[nodiscard]] std::string numbered_id(BackendKind kind);

class Sandbox {
 public:
  /// `schema` is the schema on PostgreSQL, the table prefix elsewhere.
  Sandbox(BackendKind kind, const std::string& schema, std::size_t pool_size = 16);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  [[nodiscard]] Storage& storage() noexcept { return *storage_; }
  [[nodiscard]] BackendKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] const std::string& schema() const noexcept { return schema_; }
  /// Of the outbox, ready to stand in SQL.
  [[nodiscard]] const std::string& table() const noexcept { return table_; }
  /// The file; SQLite only.
  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }

  /// A path beside it that nobody else uses.
  [[nodiscard]] std::filesystem::path scratch_file(const std::string& ending) const;

  /// Any table of ours, by its name without schema or prefix.
  [[nodiscard]] std::string table(const std::string& name) const;

  /// One statement in a transaction of its own.
  void run(const std::string& sql);
  /// The only number of the only row of a result.
  [[nodiscard]] std::int64_t number(const std::string& sql);
  /// Empties the outbox table.
  void clear();
  /// Adds rows by plain SQL, as another program would: pending, due, leased to nobody. 200-byte payloads.
  void seed(std::size_t rows);
  [[nodiscard]] std::int64_t count(const std::string& where);
  /// Throws unless exactly `rows` are DONE and none is anything else.
  void expect_all_done(std::size_t rows);

 private:
  void remove();

  BackendKind kind_;
  std::string schema_;
  std::string table_;
  std::string url_;
  std::filesystem::path file_;
  std::size_t seeded_ = 0;
  std::unique_ptr<Storage> storage_;
};

}  // namespace postrider::bench
