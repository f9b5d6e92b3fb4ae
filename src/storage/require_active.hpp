// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "postrider/error.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

/// Throws Error(not_in_transaction) for one that has ended, or that was adopted without a BEGIN: there every
/// statement would commit by itself.
inline void require_active(const Tx& tx, std::string_view what) {
  if (tx.active()) return;
  throw Error(
      ErrorCode::not_in_transaction, what, "the transaction has ended, has failed, or was never begun",
      "begin one with storage.begin(), or BEGIN on the connection that you adopted, and do this before "
      "the commit");
}

}  // namespace postrider
