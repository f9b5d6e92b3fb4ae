// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "logger/lane.hpp"

namespace postrider::logger {

/// A lane that is soon full.
inline constexpr std::uint32_t chunk_bytes = 4096;
inline constexpr std::uint32_t chunk_count = 4;
inline constexpr std::size_t lane_bytes = LaneMemory::head_bytes + std::size_t{chunk_bytes} * chunk_count;

}  // namespace postrider::logger
