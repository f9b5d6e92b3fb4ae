// SPDX-License-Identifier: Apache-2.0
#include "support/places.hpp"

namespace postrider::test {

std::string source_file(std::string_view path) {
  return std::string(POSTRIDER_SOURCE_DIR "/").append(path);
}

std::string program_path() {
  return POSTRIDER_BINARY_DIR "/bin/postrider";
}

std::string crash_child(std::string_view name) {
  return std::string(POSTRIDER_BINARY_DIR "/tests/crash/").append(name);
}

}  // namespace postrider::test
