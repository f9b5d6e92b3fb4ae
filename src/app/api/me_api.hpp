// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "app/api/routes.hpp"

namespace postrider::api {

/// Who asks, and which of these routes that change something his role reaches: for whoever offers them to
/// him.
[[nodiscard]] ApiRoute me_route(std::span<const ApiRoute> routes);

}  // namespace postrider::api
