// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>

#include "postrider/outbox_admin.hpp"
#include "postrider/queue_admin.hpp"

namespace postrider::api {

// As the API, the command line and the dashboard show them.
[[nodiscard]] boost::json::object counts_json(const OutboxCounts& counts);
[[nodiscard]] boost::json::object counts_json(const QueueCounts& counts);
[[nodiscard]] boost::json::object counts_json(const LogCounts& counts);

}  // namespace postrider::api
