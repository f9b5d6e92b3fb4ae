// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "storage/lease_store.hpp"
#include "storage/pool.hpp"

namespace postrider {

/// A lock that a connection has for as long as it lives.
class HeldConnection final : public NodeLocks::Held {
 public:
  explicit HeldConnection(std::unique_ptr<PooledConnection> connection)
      : connection_(std::move(connection)) {}
  bool still_held() noexcept override { return connection_->ping(); }

 private:
  std::unique_ptr<PooledConnection> connection_;
};

}  // namespace postrider
