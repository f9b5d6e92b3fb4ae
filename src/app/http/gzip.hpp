// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

namespace postrider::http {

enum class UnpackFault {
  damaged,    ///< not gzip, cut off, or something stands behind its end
  too_large,  ///< more than the limit
  no_memory,  ///< `grow` said no
};

/// Unpacks gzip (RFC 1952, one member or several). Stops as soon as there is more than `limit`, so that a
/// small body which unpacks to gigabytes costs no more than a large one. `grow` is asked for each piece of
/// memory before it is taken.
[[nodiscard]] std::variant<std::string, UnpackFault> unpack_gzip(
    std::string_view packed, std::size_t limit, const std::function<bool(std::size_t)>& grow);

}  // namespace postrider::http
