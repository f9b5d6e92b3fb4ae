// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace postrider::config {

/// What somebody wrote, for a message: in quotes, cut where it is long, valid UTF-8 whatever it was.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// A table as one writes it: "[storage]", and "[[outbox.routes]]" for "outbox.routes[0]".
[[nodiscard]] std::string as_written(std::string_view table);

/// "hosts" for "hosts[3]".
[[nodiscard]] std::string_view without_index(std::string_view name);

}  // namespace postrider::config
