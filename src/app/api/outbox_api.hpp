// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "app/api/routes.hpp"

namespace postrider::api {

/// Counts, search, one event, dead letters and purge.
[[nodiscard]] std::vector<ApiRoute> outbox_routes();

}  // namespace postrider::api
