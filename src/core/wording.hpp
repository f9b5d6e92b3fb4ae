// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"

namespace postrider {

/// A number and its noun, for messages: "1 event", "2 events".
[[nodiscard]] std::string counted(std::size_t count, std::string_view noun);
/// In the largest unit that divides it: "1 day", "30 s", "1500 ms", "7 us".
[[nodiscard]] std::string text_of(Duration time);
/// Begins the message of a statement that failed: "cannot run 'select …'". Long statements are cut.
[[nodiscard]] std::string cannot_run(std::string_view sql);

}  // namespace postrider
