// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/connection.hpp"
#include "postrider/identifier.hpp"
#include "storage/lease_store.hpp"

namespace postrider::postgres {

/// Session-level advisory locks, each on a connection of its own beside the pool: on one of the pool's it
/// would belong to whoever borrows that next, and go when the pool closes it.
class PostgresNodeLocks final : public NodeLocks {
 public:
  using WithConnection = std::function<void(const std::function<void(Connection&)>& work)>;

  /// `context` must outlive this and all locks.
  PostgresNodeLocks(const Identifier& schema, ConnectionContext& context, WithConnection with_connection);

  std::unique_ptr<Held> hold(std::string_view node) override;
  std::vector<std::string> free(std::span<const std::string> nodes) override;

 private:
  std::string schema_;
  ConnectionContext& context_;
  WithConnection with_connection_;
};

}  // namespace postrider::postgres
