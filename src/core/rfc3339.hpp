// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"

namespace postrider {

/// The years 1000 to 9999, which all databases take: from the first of these, before the second.
inline constexpr TimePoint first_time{std::chrono::sys_days{std::chrono::year{1000} / 1 / 1}};
inline constexpr TimePoint end_of_time{std::chrono::sys_days{std::chrono::year{10'000} / 1 / 1}};

/// "2026-06-01T10:15:30.123Z", or with an offset (+02:00), as RFC 3339 has it: seconds and offset are
/// needed, the fraction is cut at microseconds. Years 1000 to 9999. A leap second counts as the one before.
[[nodiscard]] std::optional<TimePoint> parse_time(std::string_view text);

/// In UTC, with as many digits as are needed: none, three or six.
[[nodiscard]] std::string format_time(TimePoint time);
void append_time(std::string& text, TimePoint time);

}  // namespace postrider
