// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "logger/checksum.hpp"
#include "logger/spill_names.hpp"
#include "postrider/error.hpp"

namespace postrider::logger {
namespace {

constexpr mode_t folder_mode = 0700;
constexpr mode_t file_mode = 0600;
constexpr const char* lock_name = "eventlog-spillover.lock";
// Nobody waits for the other end of a FIFO, and no link leads elsewhere.
constexpr int open_flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

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

/// Every missing part of the path. 0, or an errno: then `part` could not be made.
int make_folders(const std::string& path, std::string& part) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    part = path.substr(0, slash);
    if (::mkdir(part.c_str(), folder_mode) != 0 && errno != EEXIST) return errno;
    if (slash == std::string::npos) return 0;
  }
}

int open_folder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool everybody_writes(int folder) {
  struct stat facts {};
  return ::fstat(folder, &facts) == 0 && (facts.st_mode & S_IWOTH) != 0;
}

/// The lock's handle, or a negative errno; -EWOULDBLOCK when somebody else has it.
int lock_folder(int folder) {
  // Somebody may remove the lock's file while a logger uses the folder: then it is this lock that keeps the
  // next one out. Some file systems (NFS) have none for folders.
  if (::flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return -EWOULDBLOCK;
  const int lock = ::openat(folder, lock_name, O_RDWR | O_CREAT | open_flags, file_mode);
  if (lock < 0) return -errno;
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  const int error = errno;
  ::close(lock);
  return -error;
}

FileMark mark_of(const struct stat& facts) {
  return {facts.st_dev, facts.st_ino};
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "a device";
}

class PosixFolder final : public SpillFolder {
 public:
  explicit PosixFolder(const std::string& path) {
    std::string part;
    if (const int error = make_folders(path, part); error != 0) {
      refuse(ErrorCode::unavailable, path, "cannot make " + part + ": " + reason_of(error),
             "choose another spillover_path, or make it yourself");
    }
    folder_ = open_folder(path);
    if (folder_ < 0) {
      refuse(ErrorCode::unavailable, path, reason_of(errno),
             "it must be a folder, and no symbolic link, that this process may read");
    }
    if (everybody_writes(folder_)) {
      ::close(folder_);
      refuse(ErrorCode::invalid_argument, path, "everybody may write into it",
             "chmod o-w it, or choose a folder of its own");
    }
    refuse_others(path);
    lock_ = lock_folder(folder_);
    if (lock_ >= 0) {
      refuse_used_rings(path);
      // The process may go to another folder, and the parts of the path may be links.
      char* const whole = ::realpath(path.c_str(), nullptr);
      path_ = whole != nullptr ? whole : path;
      std::free(whole);  // NOLINT: it comes from malloc
      return;
    }
    ::close(folder_);
    if (lock_ == -EWOULDBLOCK) {
      refuse(ErrorCode::conflict, path, "another logger uses it",
             "give each logger and each process a spillover_path of its own");
    }
    refuse(ErrorCode::unavailable, path, "cannot lock it: " + reason_of(-lock_),
           "may this process write there?");
  }
  ~PosixFolder() override {
    ::close(lock_);
    ::close(folder_);
  }
  PosixFolder(const PosixFolder&) = delete;
  PosixFolder& operator=(const PosixFolder&) = delete;

  int open(const std::string& name, Mode mode) override {
    int flags = open_flags;
    if (mode == Mode::read) flags |= O_RDONLY;
    if (mode == Mode::append) flags |= O_RDWR | O_CREAT | O_APPEND;
    if (mode == Mode::update) flags |= O_RDWR | O_CREAT;
    const int handle = retried([&] { return ::openat(folder_, name.c_str(), flags, file_mode); });
    if (handle < 0) return handle;
    struct stat facts {};
    const int error = ::fstat(handle, &facts) == 0 ? 0 : errno;
    if (error == 0 && S_ISREG(facts.st_mode)) return handle;
    ::close(handle);
    return error != 0 ? -error : -EMEDIUMTYPE;
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

  int mark(int handle, FileMark& mark) override {
    struct stat facts {};
    if (::fstat(handle, &facts) != 0) return -errno;
    mark = mark_of(facts);
    return 0;
  }
  int mark(const std::string& name, FileMark& mark) override {
    struct stat facts {};
    if (::fstatat(folder_, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
    mark = mark_of(facts);
    return 0;
  }
  int written(const std::string& name, TimePoint& when) override {
    struct stat facts {};
    if (::fstatat(folder_, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
    when = TimePoint{std::chrono::seconds{facts.st_mtim.tv_sec}};
    return 0;
  }
  int restore() override {
    FileMark ours;
    if (const int error = mark(folder_, ours); error != 0) return error;
    struct stat facts {};
    if (::lstat(path_.c_str(), &facts) == 0) {
      if (mark_of(facts) == ours) return lock_again();
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return 0;  // it may be there
    }
    std::string part;
    if (const int error = make_folders(path_, part); error != 0) return -error;
    const int folder = open_folder(path_);
    if (folder < 0) return -errno;
    const int lock = everybody_writes(folder) ? -EPERM : lock_folder(folder);
    // Under the same numbers: other threads use them.
    const int error = lock < 0 ? lock : replace(folder, folder_) + replace(lock, lock_);
    ::close(folder);
    if (lock >= 0) ::close(lock);
    return error < 0 ? error : 1;
  }
  std::uint64_t boot() override {
    // Of the kernel: it is the same in all containers.
    const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    std::array<char, 64> id{};
    const ssize_t size = ::read(file, id.data(), id.size());
    ::close(file);
    return size <= 0 ? 0 : checksum({id.data(), static_cast<std::size_t>(size)});
  }

 private:
  static int replace(int by, int handle) { return ::dup3(by, handle, O_CLOEXEC) < 0 ? -errno : 0; }
  /// Without its file the lock keeps nobody out.
  int lock_again() {
    FileMark ours;
    if (mark(lock_, ours) != 0 || is_still(*this, lock_name, ours)) return 0;
    const int lock = lock_folder(folder_);
    if (lock < 0) return lock;
    const int error = replace(lock, lock_);
    ::close(lock);
    return error;
  }
  /// What stands in the place of a file and is none would fail much later, and less clearly.
  void refuse_others(const std::string& path) {
    std::vector<std::string> names;
    (void)list(names);  // who cannot read the folder hears of it soon
    for (const std::string& name : names) {
      struct stat facts {};
      if (!is_logger_file(name) || ::fstatat(folder_, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
          S_ISREG(facts.st_mode))
        continue;
      ::close(folder_);
      refuse(ErrorCode::invalid_argument, path,
             name + " is " + std::string(kind_of(facts.st_mode)) + " and not a file",
             "remove it, or choose another spillover_path");
    }
  }

  /// A ring that is locked has a logger, whatever became of the folder's lock: somebody removed or copied
  /// files, or moved the folder here. To go on without that ring would lose none of its events; but its
  /// logger has the spill files too, and what two write into those is lost. So nothing is touched.
  void refuse_used_rings(const std::string& path) {
    std::vector<std::string> names;
    (void)list(names);
    for (const std::string& name : names) {
      if (!name.starts_with(ring_prefix) || !is_logger_file(name)) continue;
      const int ring = ::openat(folder_, name.c_str(), O_RDONLY | open_flags);
      if (ring < 0) continue;  // told when it is to be taken over
      const bool used = ::flock(ring, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
      ::close(ring);
      if (!used) continue;
      ::close(lock_);
      ::close(folder_);
      refuse(ErrorCode::conflict, path, "another logger uses its file " + name,
             "end that one (fuser " + name + " says which process it is), or choose another spillover_path");
    }
  }

  std::string path_;
  int folder_ = -1;
  int lock_ = -1;
};

}  // namespace

std::unique_ptr<SpillFolder> open_spill_folder(const std::string& path) {
  return std::make_unique<PosixFolder>(path);
}

bool is_still(SpillFolder& folder, const std::string& name, const FileMark& mark) {
  FileMark found;
  const int error = folder.mark(name, found);
  return error == 0 ? found == mark : error != -ENOENT;
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
