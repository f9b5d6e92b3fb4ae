// SPDX-License-Identifier: Apache-2.0
#include "support/temp_dir.hpp"

#include <stdlib.h>

#include <cerrno>
#include <iostream>
#include <system_error>

namespace postrider::test {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "postrider-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  if (error) std::cerr << "cannot remove " << path_ << ": " << error.message() << '\n';
}

}  // namespace postrider::test
