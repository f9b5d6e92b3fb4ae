// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "backends/sqlite/connection.hpp"
#include "postrider/transaction.hpp"

namespace postrider::sqlite {

/// The connection of a user's transaction. Throws Error(wrong_storage) when it is one of another database or
/// file, Error(not_in_transaction) when it has ended. `what` begins the message: "cannot publish to <name>".
[[nodiscard]] Connection& connection_of(Tx& tx, std::string_view file, std::string_view what);

/// Several statements are one to the user: either all are in the transaction or none.
class Savepoint {
 public:
  explicit Savepoint(Connection& connection);
  /// Takes back what was done since, unless released.
  ~Savepoint();
  Savepoint(const Savepoint&) = delete;
  Savepoint& operator=(const Savepoint&) = delete;
  void release();

 private:
  Connection& connection_;
  bool released_ = false;
};

}  // namespace postrider::sqlite
