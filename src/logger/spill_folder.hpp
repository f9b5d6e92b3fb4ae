// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"

namespace postrider::logger {

/// Which file it is, whatever its name.
struct FileMark {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileMark&, const FileMark&) = default;
};

/// The files of one folder: all that spilling asks of the operating system, so that tests can put a failing
/// disk and a power cut in its place. Calls return a negative errno when they fail; they never throw. Names
/// have no slashes. Thread-safe, as the calls of the operating system are.
class SpillFolder {
 public:
  enum class Mode {
    read,    ///< must exist
    append,  ///< for reading and appending; made when it is not there
    update,  ///< for reading and writing in place; made when it is not there
  };

  virtual ~SpillFolder() = default;

  /// A handle, at least 0.
  [[nodiscard]] virtual int open(const std::string& name, Mode mode) = 0;
  virtual void close(int handle) noexcept = 0;
  [[nodiscard]] virtual std::int64_t size(int handle) = 0;
  /// How many bytes were read or written; may be fewer than asked for.
  [[nodiscard]] virtual std::int64_t read_at(int handle, char* bytes, std::size_t size,
                                             std::uint64_t offset) = 0;
  [[nodiscard]] virtual std::int64_t append(int handle, std::string_view bytes) = 0;
  [[nodiscard]] virtual std::int64_t write_at(int handle, std::string_view bytes, std::uint64_t offset) = 0;
  [[nodiscard]] virtual int truncate(int handle, std::uint64_t size) = 0;
  /// Its bytes are on the disk.
  [[nodiscard]] virtual int sync(int handle) = 0;
  /// Files made, renamed and removed before are so on the disk as well.
  [[nodiscard]] virtual int sync_folder() = 0;
  [[nodiscard]] virtual int rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual int remove(const std::string& name) = 0;
  [[nodiscard]] virtual int list(std::vector<std::string>& names) = 0;
  [[nodiscard]] virtual int mark(int handle, FileMark& mark) = 0;
  [[nodiscard]] virtual int mark(const std::string& name, FileMark& mark) = 0;
  /// When it was written to last. Not every folder knows.
  [[nodiscard]] virtual int written(const std::string& /*name*/, TimePoint& /*when*/) { return -ENOSYS; }
  /// Looks whether the folder is still where it was, and locked. When somebody has removed it or moved it
  /// away, another one is made and locked: 1, and no file is there any more. 0: all is as before.
  [[nodiscard]] virtual int restore() = 0;
  /// The same as long as the machine runs: what a process wrote, the next one finds, synced or not. 0 when
  /// nobody knows.
  [[nodiscard]] virtual std::uint64_t boot() = 0;
};

/// A handle that is closed in the end.
class SpillFile {
 public:
  SpillFile() = default;
  SpillFile(SpillFolder& folder, int handle) noexcept : folder_(&folder), handle_(handle) {}
  SpillFile(SpillFile&& other) noexcept : folder_(other.folder_), handle_(other.handle_) {
    other.handle_ = -1;
  }
  SpillFile& operator=(SpillFile&& other) noexcept {
    if (this != &other) {
      reset();
      folder_ = other.folder_;
      handle_ = other.handle_;
      other.handle_ = -1;
    }
    return *this;
  }
  ~SpillFile() { reset(); }

  void reset() noexcept {
    if (handle_ >= 0) folder_->close(handle_);
    handle_ = -1;
  }
  [[nodiscard]] bool is_open() const noexcept { return handle_ >= 0; }
  [[nodiscard]] int get() const noexcept { return handle_; }

 private:
  SpillFolder* folder_ = nullptr;
  int handle_ = -1;
};

/// Whether `name` is still the file that it was. False only when that is known not to be so.
[[nodiscard]] bool is_still(SpillFolder& folder, const std::string& name, const FileMark& mark);

/// Opens `path`, making it (for its owner alone) when it is not there, and locks it: a second logger on the
/// same folder, in this process or another, gets Error(conflict). Files are for their owner alone, and a
/// symbolic link in the place of one is refused. Throws Error when the folder cannot be used.
[[nodiscard]] std::unique_ptr<SpillFolder> open_spill_folder(const std::string& path);

/// Appends all of `bytes`, in several calls when need be. 0, or a negative errno: a part may be written then.
[[nodiscard]] int append_all(SpillFolder& folder, int handle, std::string_view bytes);

}  // namespace postrider::logger
