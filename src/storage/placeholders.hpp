// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace postrider {

/// Turns `?` into `$1`, `$2` … for PostgreSQL, leaving string literals, quoted identifiers, dollar quotes and
/// comments alone. A statement that has `$1` of its own is returned as it is.
[[nodiscard]] std::string numbered_placeholders(std::string_view sql);

}  // namespace postrider
