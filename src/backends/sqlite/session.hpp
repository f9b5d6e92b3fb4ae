// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "backends/sqlite/connection.hpp"
#include "backends/sqlite/writer.hpp"
#include "postrider/detail/tx_session.hpp"

namespace postrider::sqlite {

/// What the store asks of a transaction on SQLite, ours or adopted.
class Session : public detail::TxSession {
 public:
  [[nodiscard]] virtual Connection& connection() noexcept = 0;
  [[nodiscard]] BackendKind kind() const noexcept final { return BackendKind::sqlite; }
  Rows execute(std::string_view sql, std::span<const Value> params) final {
    return connection().execute(sql, params);
  }
};

/// A transaction of `Storage::begin`: holds the writer until it ends.
class OwnSession final : public Session {
 public:
  explicit OwnSession(Writer::Lease lease);
  ~OwnSession() override { rollback(); }
  [[nodiscard]] Connection& connection() noexcept override { return lease_.connection(); }
  [[nodiscard]] bool active() const noexcept override { return lease_.connection().in_transaction(); }
  void commit() override;
  void rollback() noexcept override { lease_.connection().rollback(); }

 private:
  Writer::Lease lease_;
};

/// A transaction on the user's connection. Keeps nothing open on it between calls, and never ends it.
class AdoptedSession final : public Session {
 public:
  explicit AdoptedSession(sqlite3* connection) noexcept : connection_(connection) {}
  [[nodiscard]] Connection& connection() noexcept override { return connection_; }
  [[nodiscard]] bool active() const noexcept override { return connection_.in_transaction(); }
  void commit() override {}
  void rollback() noexcept override {}

 private:
  Connection connection_;
};

}  // namespace postrider::sqlite
