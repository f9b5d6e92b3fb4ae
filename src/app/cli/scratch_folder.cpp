// SPDX-License-Identifier: Apache-2.0
#include "app/cli/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "postrider/error.hpp"

namespace postrider::cli {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder(std::string_view name)
    : path_((fs::temp_directory_path() / (std::string(name) + "-XXXXXX")).string()) {
  if (::mkdtemp(path_.data()) != nullptr) return;
  throw Error(ErrorCode::unavailable, "cannot make a folder in " + fs::temp_directory_path().string(),
              std::generic_category().message(errno), "set TMPDIR to one that can be written to");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!kept_) fs::remove_all(path_, ignored);
}

}  // namespace postrider::cli
