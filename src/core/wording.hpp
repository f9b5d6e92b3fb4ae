// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace postrider {

/// A number and its noun, for messages: "1 event", "2 events".
[[nodiscard]] std::string counted(std::size_t count, std::string_view noun);

}  // namespace postrider
