// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace postrider::test {

/// An exception whose text is null: nothing forbids it.
struct Speechless : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

}  // namespace postrider::test
