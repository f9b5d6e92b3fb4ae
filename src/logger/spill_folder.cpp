// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "postrider/error.hpp"

namespace postrider::logger {
namespace {

constexpr mode_t folder_mode = 0700;
constexpr mode_t file_mode = 0600;
constexpr const char* lock_name = "eventlog-spillover.lock";

/// The call again when a signal interrupted it; a negative errno when it failed.
template <class Call>
auto retried(Call call) -> decltype(call()) {
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void refuse(ErrorCode code, const std::string& path, const std::string& why,
                         const std::string& hint) {
  throw Error(code, "cannot use the spill folder " + path, why, hint);
}

/// Every missing part of the path.
void make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), folder_mode) != 0 && errno != EEXIST) {
      refuse(ErrorCode::unavailable, path, "cannot make " + part + ": " + reason_of(errno),
             "choose another spillover_path, or make it yourself");
    }
    if (slash == std::string::npos) return;
  }
}

class PosixFolder final : public SpillFolder {
 public:
  explicit PosixFolder(const std::string& path) {
    make_folders(path);
    folder_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder_ < 0) {
      refuse(ErrorCode::unavailable, path, reason_of(errno),
             "it must be a folder, and no symbolic link, that this process may read");
    }
    struct stat facts {};
    if (::fstat(folder_, &facts) == 0 && (facts.st_mode & S_IWOTH) != 0) {
      ::close(folder_);
      refuse(ErrorCode::invalid_argument, path, "everybody may write into it",
             "chmod o-w it, or choose a folder of its own");
    }
    lock_ = ::openat(folder_, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, file_mode);
    const int failed = lock_ < 0 ? errno : (::flock(lock_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno);
    if (failed == 0) return;
    if (lock_ >= 0) ::close(lock_);
    ::close(folder_);
    if (failed == EWOULDBLOCK) {
      refuse(ErrorCode::conflict, path, "another logger uses it",
             "give each logger and each process a spillover_path of its own");
    }
    refuse(ErrorCode::unavailable, path, "cannot lock it: " + reason_of(failed),
           "may this process write there?");
  }
  ~PosixFolder() override {
    ::close(lock_);
    ::close(folder_);
  }
  PosixFolder(const PosixFolder&) = delete;
  PosixFolder& operator=(const PosixFolder&) = delete;

  int open(const std::string& name, Mode mode) override {
    int flags = O_NOFOLLOW | O_CLOEXEC;
    if (mode == Mode::read) flags |= O_RDONLY;
    if (mode == Mode::append) flags |= O_RDWR | O_CREAT | O_APPEND;
    if (mode == Mode::update) flags |= O_RDWR | O_CREAT;
    return retried([&] { return ::openat(folder_, name.c_str(), flags, file_mode); });
  }
  void close(int handle) noexcept override { ::close(handle); }
  std::int64_t size(int handle) override {
    struct stat facts {};
    return ::fstat(handle, &facts) == 0 ? facts.st_size : -errno;
  }
  std::int64_t read_at(int handle, char* bytes, std::size_t size, std::uint64_t offset) override {
    return retried([&] { return ::pread(handle, bytes, size, static_cast<off_t>(offset)); });
  }
  std::int64_t append(int handle, std::string_view bytes) override {
    return retried([&] { return ::write(handle, bytes.data(), bytes.size()); });
  }
  std::int64_t write_at(int handle, std::string_view bytes, std::uint64_t offset) override {
    return retried([&] { return ::pwrite(handle, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
  }
  int truncate(int handle, std::uint64_t size) override {
    return retried([&] { return ::ftruncate(handle, static_cast<off_t>(size)); });
  }
  // Never again after a failure: the kernel may have dropped the pages and would say "done" for nothing.
  int sync(int handle) override { return ::fdatasync(handle) == 0 ? 0 : -errno; }
  int sync_folder() override { return ::fsync(folder_) == 0 ? 0 : -errno; }
  int rename(const std::string& from, const std::string& to) override {
    return ::renameat(folder_, from.c_str(), folder_, to.c_str()) == 0 ? 0 : -errno;
  }
  int remove(const std::string& name) override {
    return ::unlinkat(folder_, name.c_str(), 0) == 0 ? 0 : -errno;
  }
  int list(std::vector<std::string>& names) override {
    const int copy = ::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy < 0) return -errno;
    DIR* const stream = ::fdopendir(copy);
    if (stream == nullptr) {
      const int error = errno;
      ::close(copy);
      return -error;
    }
    errno = 0;
    // Each stream is used by one thread: readdir is safe then.
    while (const dirent* entry = ::readdir(stream)) names.emplace_back(entry->d_name);  // NOLINT
    const int error = errno;
    ::closedir(stream);
    return -error;
  }

 private:
  int folder_ = -1;
  int lock_ = -1;
};

}  // namespace

std::unique_ptr<SpillFolder> open_spill_folder(const std::string& path) {
  return std::make_unique<PosixFolder>(path);
}

int append_all(SpillFolder& folder, int handle, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::int64_t written = folder.append(handle, bytes);
    if (written < 0) return static_cast<int>(written);
    if (written == 0) return -EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace postrider::logger
