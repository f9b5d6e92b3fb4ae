// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace postrider::logger {

/// XXH3, 64 bits.
[[nodiscard]] std::uint64_t checksum(std::string_view bytes) noexcept;

}  // namespace postrider::logger
