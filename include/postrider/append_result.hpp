// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "postrider/stored_event.hpp"

namespace postrider {

/// The events stand at these positions, one after the other.
struct Appended {
  Position first{};
  Position last{};
  friend bool operator==(const Appended&, const Appended&) = default;
};

/// Nothing was appended: an event that matches the condition is there.
struct Conflict {
  Position position{};  ///< of one of them
  std::string type{};
  friend bool operator==(const Conflict&, const Conflict&) = default;
};

using AppendResult = std::variant<Appended, Conflict>;

}  // namespace postrider
