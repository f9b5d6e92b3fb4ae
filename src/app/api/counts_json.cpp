// SPDX-License-Identifier: Apache-2.0
#include "app/api/counts_json.hpp"

#include <boost/json.hpp>

#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"

namespace postrider::api {

namespace json = boost::json;

json::object counts_json(const OutboxCounts& counts) {
  return {{"pending", counts.pending},
          {"retrying", counts.retrying},
          {"done", counts.done},
          {"dead", counts.dead},
          {"oldestPendingSeconds", seconds(counts.oldest_pending)},
          {"oldestUndeliveredSeconds", seconds(counts.oldest_undelivered)},
          {"lastError", counts.last_error.empty() ? json::value(nullptr) : shown(counts.last_error)}};
}

json::object counts_json(const QueueCounts& counts) {
  return {{"pending", counts.pending},         {"delayed", counts.delayed},
          {"processing", counts.processing},   {"abandoned", counts.abandoned},
          {"quarantined", counts.quarantined}, {"oldestPendingSeconds", seconds(counts.oldest_pending)}};
}

json::object counts_json(const LogCounts& counts) {
  return {{"completed", counts.completed},
          {"completedWithErrors", counts.completed_with_errors},
          {"failed", counts.failed}};
}

}  // namespace postrider::api
