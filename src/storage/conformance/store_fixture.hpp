// SPDX-License-Identifier: Apache-2.0
// What the conformance tests of all stores share: a fresh database and a clock that stands still.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "postrider/clock.hpp"
#include "postrider/error.hpp"
#include "postrider/storage.hpp"
#include "support/backend.hpp"

namespace postrider::conformance {

using namespace std::chrono_literals;

class StoreConformance : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend(), test::TestDatabase::Options{.clock = &clock_});
  }

  [[nodiscard]] test::TestDatabase& database() { return *database_; }
  [[nodiscard]] Storage& storage() { return database_->storage(); }
  [[nodiscard]] std::string table(std::string_view name) const { return database_->table(name); }

  /// Any statement, in a transaction of its own.
  template <class... Args>
  Rows sql(const std::string& statement, const Args&... args) {
    Transaction tx = storage().begin();
    Rows rows = tx.execute(statement, args...);
    tx.commit();
    return rows;
  }
  /// A time column as microseconds since 1970, for SQL of the tests' own.
  [[nodiscard]] std::string micros_sql(const std::string& column) {
    switch (storage().kind()) {
      case BackendKind::postgres:
        return "(extract(epoch from " + column + ") * 1000000)::bigint";
      case BackendKind::mariadb:
        return "timestampdiff(microsecond, '1970-01-01', " + column + ")";
      case BackendKind::sqlite:
        break;
    }
    return column;
  }
  /// A column of bytes as lower-case hex digits.
  [[nodiscard]] std::string hex_sql(const std::string& column) {
    return storage().kind() == BackendKind::postgres ? "encode(" + column + ", 'hex')"
                                                     : "lower(hex(" + column + "))";
  }

  ManualClock clock_;

 private:
  std::optional<test::TestDatabase> database_;
};

/// A session of a backend that does not exist here.
class ForeignSession final : public detail::TxSession {
 public:
  explicit ForeignSession(BackendKind kind) : kind_(kind) {}
  [[nodiscard]] BackendKind kind() const noexcept override { return kind_; }
  [[nodiscard]] bool active() const noexcept override { return true; }
  Rows execute(std::string_view /*sql*/, std::span<const Value> /*params*/) override { return {}; }
  void commit() override {}
  void rollback() noexcept override {}

 private:
  BackendKind kind_;
};

/// The Error that `action` throws, or a failure.
template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::database, "nothing was thrown");
}

}  // namespace postrider::conformance
