// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace postrider::cli {

/// A folder of its own among the temporary ones, with whatever is put into it, for as long as this object
/// lives.
class ScratchFolder {
 public:
  /// Its name begins like this. Throws Error(unavailable) when it cannot be made.
  explicit ScratchFolder(std::string_view name = "postrider");
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// It is somebody else's to remove.
  void keep() noexcept { kept_ = true; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
  bool kept_ = false;
};

}  // namespace postrider::cli
