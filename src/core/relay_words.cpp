// SPDX-License-Identifier: Apache-2.0
#include "postrider/relay_admin.hpp"

namespace postrider {

std::string_view to_string(PairState state) noexcept {
  switch (state) {
    case PairState::active:
      return "ACTIVE";
    case PairState::paused:
      return "PAUSED";
    case PairState::failed:
      break;
  }
  return "FAILED";
}

}  // namespace postrider
