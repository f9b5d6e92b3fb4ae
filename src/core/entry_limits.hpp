// SPDX-License-Identifier: Apache-2.0
// What the Event Log API takes: it checks what comes in by these, and the logger what is logged.
#pragma once

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
}  // namespace entry_bounds

}  // namespace postrider
