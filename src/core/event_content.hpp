// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "postrider/event.hpp"

namespace postrider {

/// Tells whether an event under the same id is still the one that it was: a dead letter can be edited, and
/// an id that was purged can be published again. The same for an event as it was published and as it is read
/// back, so without the two fields that may differ between these: ordering key and time of delivery.
[[nodiscard]] std::size_t content_of(const Event& event);
/// The same question about two events that are both at hand: exact, and cheap when they are one.
[[nodiscard]] bool same_content(const Event& a, const Event& b);

}  // namespace postrider
