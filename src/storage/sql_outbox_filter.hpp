// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "storage/outbox_pending_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// " where …": the rows that are neither DONE nor DEAD, by the index of those with or without an ordering
/// key.
[[nodiscard]] std::string_view where_pending(BackendKind kind, bool ordered);
/// Adds " and …" for all that is asked of pending rows but their ids. Throws Error(invalid_argument) for a
/// filter with too many values.
SqlQuery& and_pending(SqlQuery& query, const PendingRows& rows);

}  // namespace postrider
