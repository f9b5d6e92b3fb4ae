// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace postrider {

/// The file that a URL sqlite:… names, for those too who must know it without opening it. Throws Error for
/// one that names none.
[[nodiscard]] std::string sqlite_file_of(std::string_view url);

}  // namespace postrider
