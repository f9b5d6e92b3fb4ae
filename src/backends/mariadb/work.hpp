// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "backends/mariadb/link.hpp"
#include "storage/pool.hpp"

namespace postrider::mariadb {

/// Borrows connections for work of our own. Thread-safe.
class Work {
 public:
  /// `patience`: after how long its connections give up a silent server; zero: never.
  Work(ConnectionPool& pool, Duration patience) noexcept : pool_(pool), patience_(patience) {}

  /// Runs `body` on a connection, and again after a deadlock or lock timeout (a few times) and after finding
  /// that the connection had broken while it rested (once). So `body` starts from nothing each time, and what
  /// it does is one statement or one transaction.
  void run(const std::function<void(Link&)>& body) const;

  /// The same around START TRANSACTION and COMMIT, with rollback when `body` throws. The failpoints are
  /// passed around the COMMIT.
  struct Points {
    const char* before_commit = nullptr;
    const char* after_commit = nullptr;
  };
  void transaction(const std::function<void(Link&)>& body, Points points) const;

  /// A connection with a transaction begun on it.
  [[nodiscard]] ConnectionPool::Lease begin() const;

 private:
  ConnectionPool& pool_;
  const Duration patience_;
};

}  // namespace postrider::mariadb
