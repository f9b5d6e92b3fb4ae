// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/stream_query.hpp"
#include "postrider/topic.hpp"

namespace postrider {

/// What the store can find by itself of a topic: never less than its events; `Topic::matches` does the rest.
[[nodiscard]] Query query_of(const Topic& topic);

}  // namespace postrider
