// SPDX-License-Identifier: Apache-2.0
#include "logger/checksum.hpp"

#define XXH_INLINE_ALL  // a header is all that is needed then: no library to link
#include <xxhash.h>

namespace postrider::logger {

std::uint64_t checksum(std::string_view bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace postrider::logger
