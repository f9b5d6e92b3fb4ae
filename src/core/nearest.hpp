// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace postrider {

/// Of the known names the one that `name` was probably meant to be: the fewest letters put in, left out,
/// changed or swapped with their neighbour. Empty when none is near, or `name` is too long to be one.
[[nodiscard]] std::string_view nearest_of(std::string_view name, std::span<const std::string_view> known);

}  // namespace postrider
