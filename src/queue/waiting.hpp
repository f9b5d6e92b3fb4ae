// SPDX-License-Identifier: Apache-2.0
// How those wait who cannot be woken by another process: looks that become rarer.
#pragma once

#include "postrider/clock.hpp"

namespace postrider {

inline constexpr Duration first_pause = std::chrono::milliseconds{100};
inline constexpr Duration longest_pause = std::chrono::seconds{1};
/// What is longer could not be added to a time.
inline constexpr Duration longest_wait = std::chrono::hours{24 * 365};

}  // namespace postrider
