// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "postrider/event.hpp"

namespace postrider {

/// What an event brings along in bytes: payload, headers, id and names. What it takes in memory beside them
/// is bounded by the number of events.
[[nodiscard]] inline std::size_t size_of(const Event& event) noexcept {
  return event.payload().size() + event.headers_json().size() + event.id().view().size() +
         event.type().size() + event.aggregate_type().size() + event.aggregate_id().size() +
         event.tenant_id().size() + event.ordering_key().size();
}

}  // namespace postrider
