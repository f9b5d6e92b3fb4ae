// SPDX-License-Identifier: Apache-2.0
// For tests that run once per database: TEST_P on a BackendTest, then POSTRIDER_FOR_EACH_BACKEND(YourTest).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/storage.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {

/// "sqlite", and "postgres", "mariadb" when they are compiled in.
[[nodiscard]] std::vector<std::string> backend_names();

/// Empty when tests can run on the backend. Otherwise what is missing, with a hint.
[[nodiscard]] std::string why_unavailable(std::string_view backend);
/// Whether tests of a missing server are to be skipped: POSTRIDER_SKIP_SERVERS=1.
[[nodiscard]] bool skip_missing_servers();

/// A fresh database for one test: a file of its own, or a schema (prefix) of its own on the shared test server. Removed at
/// the end.
class TestDatabase {
 public:
  struct Options {
    Clock* clock = nullptr;  ///< as StorageOptions::clock
    bool migrate = true;
    std::size_t pool_size = 8;
  };

  explicit TestDatabase(std::string_view backend);
  TestDatabase(std::string_view backend, const Options& options);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  [[nodiscard]] Storage& storage() noexcept { return *storage_; }
  /// One more storage on the same tables: another node.
  [[nodiscard]] std::unique_ptr<Storage> open_another() const { return open_another(options_); }
  [[nodiscard]] std::unique_ptr<Storage> open_another(const StorageOptions& options) const;

  [[nodiscard]] const std::string& backend() const noexcept { return backend_; }
  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  /// With the schema of this database.
  [[nodiscard]] const StorageOptions& options() const noexcept { return options_; }
  /// For SQL: `postrider.outbox_event`, `postrider_outbox_event`.
  [[nodiscard]] std::string table(std::string_view name) const;

 private:
  void remove() const;

  const std::string backend_;
  TempDir dir_;
  std::string url_;
  StorageOptions options_;
  std::unique_ptr<Storage> storage_;
};

/// A test with the backend's name as its parameter. Without the server it fails (or is skipped, when that was asked for).
class BackendTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  [[nodiscard]] static const std::string& backend() { return GetParam(); }
};

/// Tests of `suite` get the names suite.Test/sqlite, …/postgres, …/mariadb.
#define POSTRIDER_FOR_EACH_BACKEND(suite)                                                        \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, ::testing::ValuesIn(::postrider::test::backend_names()), \
                           [](const auto& chosen) { return chosen.param; })

}  // namespace postrider::test
