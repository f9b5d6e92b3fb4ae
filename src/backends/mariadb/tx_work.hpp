// SPDX-License-Identifier: Apache-2.0
// What stores need to write into a user's transaction.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "backends/mariadb/link.hpp"
#include "postrider/event.hpp"
#include "postrider/transaction.hpp"

namespace postrider::mariadb {

/// Parameters of one statement at most, well below the server's usual max_allowed_packet of 16 MiB.
inline constexpr std::size_t statement_bytes = 4 << 20;

/// The connection of a transaction. Throws Error(wrong_storage) for one of another database and
/// Error(not_in_transaction) for one that is not active.
[[nodiscard]] Link& link_of(Tx& tx);

/// Runs `body`; with `several` statements in it they happen all or not at all, also for a caller that catches
/// the error and commits what else is in the transaction.
void whole_or_not(Link& link, bool several, const std::function<void()>& body);

/// Texts go as bytes: the table stores them as they are, whatever character set a foreign session has told
/// the server.
[[nodiscard]] Value bytes_or_null(std::string_view text);

/// How much of a statement this event takes up, roughly.
[[nodiscard]] std::size_t bytes_of(const Event& event);

}  // namespace postrider::mariadb
