// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "app/api/routes.hpp"

namespace postrider::api {

/// Counts, search, one event, what is stuck, requeue, cancel, dead letters and purge.
[[nodiscard]] std::vector<ApiRoute> outbox_routes();

}  // namespace postrider::api
