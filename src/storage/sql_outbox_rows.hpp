// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "storage/outbox_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// Payload and headers.
enum class OutboxContent { whole, left_out };

/// What `outbox_records` reads.
[[nodiscard]] std::string outbox_columns(const SqlDialect& dialect,
                                         OutboxContent content = OutboxContent::whole);
[[nodiscard]] std::vector<OutboxRecord> outbox_records(const Rows& rows);

}  // namespace postrider
