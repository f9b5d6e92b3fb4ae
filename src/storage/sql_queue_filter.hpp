// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/queue_admin.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// Adds " and …" for all that the filter asks of rows in event_queue. Throws Error(invalid_argument) for one
/// with too many values.
SqlQuery& and_in_queue(SqlQuery& query, const QueueFilter& filter);
/// The same for event_log; refuses what only rows in the queue have.
SqlQuery& and_in_log(SqlQuery& query, const QueueFilter& filter, BackendKind kind);

}  // namespace postrider
