// SPDX-License-Identifier: Apache-2.0
#include "core/wording.hpp"

namespace postrider {

std::string counted(std::size_t count, std::string_view noun) {
  std::string text = std::to_string(count);
  text.append(" ").append(noun);
  if (count != 1) text += 's';
  return text;
}

}  // namespace postrider
