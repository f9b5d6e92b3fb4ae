// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/relay.hpp"

namespace postrider {

/// The same with defaults filled in; throws Error(invalid_argument) for what is out of bounds.
[[nodiscard]] RelayOptions checked(RelayOptions options);
void check(const PairOptions& options);

}  // namespace postrider
