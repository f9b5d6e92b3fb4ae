// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "app/api/routes.hpp"
#include "postrider/outbox.hpp"

namespace postrider::api {

/// POST /api/events. `outbox` is this node's, null while there is none: then another node's poller takes what
/// is published.
[[nodiscard]] std::vector<ApiRoute> publish_routes(std::function<Outbox*()> outbox);

}  // namespace postrider::api
