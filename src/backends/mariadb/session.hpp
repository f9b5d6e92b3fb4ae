// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mysql.h>

#include "backends/mariadb/connection.hpp"
#include "backends/mariadb/link.hpp"
#include "postrider/detail/tx_session.hpp"
#include "storage/pool.hpp"

namespace postrider::mariadb {

/// A transaction on MariaDB, ours or lent.
class Session : public detail::TxSession {
 public:
  [[nodiscard]] BackendKind kind() const noexcept final { return BackendKind::mariadb; }
  [[nodiscard]] virtual Link& link() noexcept = 0;
};

/// A transaction of `Storage::begin`, on a connection of the pool.
class OwnSession final : public Session {
 public:
  /// `lease` holds a Connection on which START TRANSACTION has succeeded.
  explicit OwnSession(ConnectionPool::Lease lease) noexcept;
  ~OwnSession() override;

  [[nodiscard]] Link& link() noexcept override { return *link_; }
  [[nodiscard]] bool active() const noexcept override;
  Rows execute(std::string_view sql, std::span<const Value> params) override;
  void commit() override;
  void rollback() noexcept override;

 private:
  void give_back() noexcept;

  ConnectionPool::Lease lease_;
  Link* link_;
  bool ended_ = false;
  bool ended_unseen_ = false;   // inside a statement such as CALL: by COMMIT or by ROLLBACK, nobody can tell
  bool state_changed_ = false;  // by a statement such as SET: the next user must not inherit it
};

/// A transaction on the user's own connection, which is never committed or rolled back here.
class LentSession final : public Session {
 public:
  explicit LentSession(MYSQL* mysql);

  [[nodiscard]] Link& link() noexcept override { return link_; }
  [[nodiscard]] bool active() const noexcept override { return link_.in_transaction(); }
  Rows execute(std::string_view sql, std::span<const Value> params) override;
  void commit() override;
  void rollback() noexcept override;

 private:
  Link link_;
};

}  // namespace postrider::mariadb
