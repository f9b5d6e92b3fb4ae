// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

namespace postrider::test {

/// A disk that is soon full, seen by this process and its children alone: it vanishes with them, however they
/// end. Mounting one takes the rights of root.
class SmallDisk {
 public:
  SmallDisk() = default;
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// `size` as tmpfs takes it, "2m". Empty when there is one; else why not.
  std::string mount(const std::string& size) {
    std::string path = (std::filesystem::temp_directory_path() / "small_disk_XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) return "mkdtemp: " + std::string(std::strerror(errno));
    path_ = path;
    if (::unshare(CLONE_NEWNS) != 0) return "unshare: " + std::string(std::strerror(errno));
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) != 0) {
      return "mount: " + std::string(std::strerror(errno));
    }
    mounted_ = true;
    return {};
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
    if (!path_.empty()) ::rmdir(path_.c_str());
  }

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Takes all the room there is.
  void fill() const {
    const int fd = ::open(file("ballast").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const std::string block(4096, 'x');
    while (::write(fd, block.data(), block.size()) > 0) {
    }
    ::close(fd);
  }
  void make_room() const { ::unlink(file("ballast").c_str()); }

 private:
  std::string path_;
  bool mounted_ = false;
};

}  // namespace postrider::test
