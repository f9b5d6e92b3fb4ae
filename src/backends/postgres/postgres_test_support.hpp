// SPDX-License-Identifier: Apache-2.0
// What the tests of this backend share.
#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "postrider/error.hpp"
#include "storage/outbox_store.hpp"
#include "support/backend.hpp"

namespace postrider::postgres {

struct FinishConnection {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
using NativeConnection = std::unique_ptr<PGconn, FinishConnection>;

/// A schema of its own on the test server.
class PostgresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = test::why_unavailable("postgres");
    if (!reason.empty()) {
      if (test::skip_missing_servers()) GTEST_SKIP() << "SKIPPED, NOT TESTED: " << reason;
      GTEST_FAIL() << reason;
    }
    database_.emplace("postgres", options());
  }
  [[nodiscard]] virtual test::TestDatabase::Options options() const { return {}; }

  [[nodiscard]] Storage& storage() { return database_->storage(); }
  [[nodiscard]] OutboxStore& store() { return storage().outbox_store(); }
  [[nodiscard]] std::string table() const { return database_->table("outbox_event"); }
  [[nodiscard]] std::string url() const { return database_->url(); }

  void insert(Tx& tx, const Event& event, Duration lease = {}, std::string_view key = {}) {
    const NewOutboxRow row{.event = &event, .ordering_key = key, .lease = lease};
    store().insert(tx, "node", {&row, 1});
  }
  Rows query(const std::string& sql) {
    Transaction tx = storage().begin();
    Rows rows = tx.execute(sql);
    tx.commit();
    return rows;
  }
  [[nodiscard]] std::int64_t row_count() { return query("SELECT count(*) FROM " + table()).integer(0, 0); }

  [[nodiscard]] NativeConnection connect() const {
    NativeConnection connection(PQconnectdb(url().c_str()));
    EXPECT_EQ(PQstatus(connection.get()), CONNECTION_OK) << PQerrorMessage(connection.get());
    return connection;
  }
  static void run(const NativeConnection& connection, const std::string& sql) {
    PGresult* result = PQexec(connection.get(), sql.c_str());
    EXPECT_TRUE(PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK)
        << sql << ": " << PQerrorMessage(connection.get());
    PQclear(result);
  }

  std::optional<test::TestDatabase> database_;
};

/// The Error that `action` throws; a failed test when it throws none.
template <class Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::invalid_argument, "nothing was thrown");
}

}  // namespace postrider::postgres
