// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <iostream>
#include <string_view>

namespace postrider::test {

/// What must hold for every input. libFuzzer keeps the input that ends the process.
inline void require(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "fuzz: this must hold, and does not: " << what << std::endl;
  std::abort();
}

}  // namespace postrider::test
