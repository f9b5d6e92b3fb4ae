// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "app/api/routes.hpp"
#include "postrider/event_store.hpp"

namespace postrider::api {

/// The event store: GET /read and POST /append as the test suite of dcb.events calls them, and what a person
/// who looks into it wants. `store` lives as long as the routes.
[[nodiscard]] std::vector<ApiRoute> store_routes(EventStore& store);

}  // namespace postrider::api
