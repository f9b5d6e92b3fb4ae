// SPDX-License-Identifier: Apache-2.0
// What the Event Log API takes: it checks what comes in by these, and the logger what is logged.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace postrider {

/// How long the fields of an entry may be: characters, and bytes for the two that may be long.
struct EntryLimits {
  static constexpr std::size_t name = 128;     ///< ids of applications, correlations and users; systems; keys
  static constexpr std::size_t process = 200;  ///< process_name, step
  static constexpr std::size_t status = 64;
  static constexpr std::size_t details_bytes = 64U << 10U;
  static constexpr std::size_t extras_bytes = 64U << 10U;  ///< all of them, as one JSON object
};

/// One field. No text may have a NUL in it.
struct EntryBound {
  std::string_view name;
  std::size_t most;
  bool in_bytes = false;  ///< else in characters
  bool required = false;
};

/// The seed's names, in the seed's order, and the key.
namespace entry_bounds {
inline constexpr EntryBound application_id{"applicationId", EntryLimits::name, false, true};
inline constexpr EntryBound correlation_id{"correlationId", EntryLimits::name};
inline constexpr EntryBound process_name{"processName", EntryLimits::process, false, true};
inline constexpr EntryBound process_status{"processStatus", EntryLimits::status, false, true};
inline constexpr EntryBound step{"step", EntryLimits::process};
inline constexpr EntryBound details{"details", EntryLimits::details_bytes, true};
inline constexpr EntryBound target_system{"targetSystem", EntryLimits::name};
inline constexpr EntryBound originating_system{"originatingSystem", EntryLimits::name};
inline constexpr EntryBound user_id{"userId", EntryLimits::name};
inline constexpr EntryBound idempotency_key{"idempotencyKey", EntryLimits::name};
inline constexpr std::array all{application_id, correlation_id, process_name,  process_status,
                                step,           details,        target_system, originating_system,
                                user_id,        idempotency_key};
}  // namespace entry_bounds

/// No valid entry is larger as JSON, though each of its characters be written as an escape: "\u0001", or two
/// of them for what is beyond U+FFFF. White space around its members is not counted.
inline constexpr std::size_t largest_entry_json = [] {
  constexpr std::size_t escaped_byte = 6;
  constexpr std::size_t escaped_character = 12;
  std::size_t bytes = EntryLimits::extras_bytes * escaped_byte;
  for (const EntryBound& bound : entry_bounds::all) {
    bytes += bound.most * (bound.in_bytes ? escaped_byte : escaped_character);
    bytes += bound.name.size() + std::string_view(R"("":"",)").size();
  }
  return bytes + std::string_view(R"({"timestamp":"2026-06-01T10:15:30.123456789+00:00"})").size();
}();

}  // namespace postrider
