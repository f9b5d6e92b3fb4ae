// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace postrider {

/// The number of a lock of this name, for databases whose locks have numbers. Two names with one number would
/// make a dead node look alive until its lease is over: no harm.
[[nodiscard]] constexpr std::uint64_t lock_number(std::string_view schema, std::string_view name) noexcept {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  const auto add = [&](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL; };
  for (const char c : schema) add(c);
  add('\0');
  for (const char c : name) add(c);
  return hash;
}

}  // namespace postrider
