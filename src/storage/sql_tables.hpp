// SPDX-License-Identifier: Apache-2.0
// Tables that more than one store reads, without their prefix.
#pragma once

#include <string_view>

namespace postrider {

inline constexpr std::string_view outbox_table = "outbox_event";
inline constexpr std::string_view log_table = "event_log";
inline constexpr std::string_view entries_table = "event_log_entries";

}  // namespace postrider
