// SPDX-License-Identifier: Apache-2.0
#include "logger/suspicion.hpp"

namespace postrider::logger {

bool blames_event(int status) noexcept {
  switch (status) {
    case 401:
    case 404:
    case 405:
    case 407:
    case 408:
    case 425:
    case 429:
    case 502:
    case 503:
    case 504:
      return false;
    default:
      return status >= 400 && status < 600;
  }
}

void Suspicion::failed(int status, bool vouched, std::uint64_t successes) noexcept {
  // Some events make the receiver hang up. So do receivers that are not there: others tell which it is.
  if (status != 0 && !blames_event(status)) {
    clear();
    return;
  }
  ++failures_;
  if (vouched) ++vouched_;
  successes_ = successes;
}

}  // namespace postrider::logger
