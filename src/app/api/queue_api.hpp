// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "app/api/routes.hpp"

namespace postrider::api {

/// The queue, its log, and projections. `stuck_after`: how long an event may be in progress before it counts
/// as stuck, unless a caller says otherwise.
[[nodiscard]] std::vector<ApiRoute> queue_routes(Duration stuck_after);

}  // namespace postrider::api
