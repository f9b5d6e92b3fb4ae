// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libpq-fe.h>

#include <span>
#include <string_view>

#include "backends/postgres/connection.hpp"
#include "postrider/detail/tx_session.hpp"
#include "storage/pool.hpp"

namespace postrider::postgres {

/// A transaction whose connection we can reach below SQL text. Others (pqxx) are served through `execute`
/// alone.
class NativeSession : public detail::TxSession {
 public:
  [[nodiscard]] BackendKind kind() const noexcept final { return BackendKind::postgres; }
  /// Runs one of our own statements within the transaction.
  virtual Result run(const Statement& statement, const Params& params, std::string_view what) = 0;
};

/// A transaction of `Storage::begin`. BEGIN travels together with the first statement, which saves a round
/// trip; a transaction that never runs one never reaches the server.
class PooledSession final : public NativeSession {
 public:
  explicit PooledSession(ConnectionPool::Lease lease) noexcept;

  [[nodiscard]] bool active() const noexcept override;
  Rows execute(std::string_view sql, std::span<const Value> params) override;
  Result run(const Statement& statement, const Params& params, std::string_view what) override;
  void commit() override;
  void rollback() noexcept override;

 private:
  enum class State { fresh, begun, ended };
  template <class Send>
  Result run_one(std::string_view what, const Send& send);

  ConnectionPool::Lease lease_;
  Connection* connection_;
  State state_ = State::fresh;
};

/// A transaction on a user's connection. Everything is unnamed and in the plain protocol: nothing of ours
/// stays behind.
class AdoptedSession final : public NativeSession {
 public:
  explicit AdoptedSession(PGconn* connection);

  [[nodiscard]] bool active() const noexcept override;
  Rows execute(std::string_view sql, std::span<const Value> params) override;
  Result run(const Statement& statement, const Params& params, std::string_view what) override;
  void commit() override;
  void rollback() noexcept override {}

 private:
  void require_plain_mode(std::string_view what) const;
  /// For statements of our own.
  void require_utf8(std::string_view what) const;
  Result checked(PGresult* native, std::string_view what) const;

  PGconn* connection_;
};

}  // namespace postrider::postgres
