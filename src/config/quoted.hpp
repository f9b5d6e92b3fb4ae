// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace postrider::config {

/// What somebody wrote, for a message: in quotes, cut where it is long, valid UTF-8 whatever it was.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace postrider::config
