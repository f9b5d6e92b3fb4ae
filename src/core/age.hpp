// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "postrider/clock.hpp"

namespace postrider {

/// "90d", "12h", "30m", "45s", "2w": a whole number and its unit, from one second to a thousand years. Throws
/// Error(invalid_argument), with `option` as its subject.
[[nodiscard]] Duration parse_age(std::string_view option, std::string_view text);

/// The shortest form that is exact; parts of a second are cut.
[[nodiscard]] std::string format_age(Duration age);
/// For a reader: in the largest unit that there are two of, the rest is cut. "9d", "47h", "90s".
[[nodiscard]] std::string format_about(Duration age);

}  // namespace postrider
