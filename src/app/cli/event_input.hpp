// SPDX-License-Identifier: Apache-2.0
// Parts of events as they are written on a command line.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "postrider/clock.hpp"

namespace postrider::cli {

/// The text itself; of `@name` what is in that file, of `-` what comes on standard input. Throws Error: for a
/// file that cannot be read, and for more than an event can have.
[[nodiscard]] std::string read_data(const std::string& given);

/// The same, for JSON alone. Throws Error(invalid_argument), with `option` as its subject, for what is none.
[[nodiscard]] std::string read_json(const std::string& option, const std::string& given);

/// "name=value". Throws Error(invalid_argument), with `option` as its subject, for a text without `=`.
[[nodiscard]] std::pair<std::string, std::string> name_and_value(const std::string& option,
                                                                 const std::string& text);

/// RFC 3339. Throws Error(invalid_argument).
[[nodiscard]] TimePoint time_of_option(const std::string& option, const std::string& text);
/// A time, or an age before now ("90d"); nothing for an empty text.
[[nodiscard]] std::optional<TimePoint> time_or_age(const std::string& option, const std::string& text);

}  // namespace postrider::cli
