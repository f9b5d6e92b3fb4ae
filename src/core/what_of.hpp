// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace postrider {

/// The message of somebody else's exception. Their `what()` may return a null pointer, of which no string can
/// be made.
[[nodiscard]] inline std::string what_of(const std::exception& error) {
  const char* what = error.what();
  return what != nullptr ? what : "an exception without a message";
}

}  // namespace postrider
