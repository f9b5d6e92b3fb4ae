// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/outbox.hpp"

namespace postrider {

/// Fills in what was left to its default (clock, metrics, retry policy, node name) and checks every bound.
/// Throws Error(invalid_argument) naming the option, its value and its bounds.
[[nodiscard]] OutboxOptions checked(OutboxOptions options);

}  // namespace postrider
