// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/node_locks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "backends/sqlite/companion_file.hpp"
#include "storage/lock_number.hpp"

namespace postrider::sqlite {
namespace {

class LockFile {
 public:
  explicit LockFile(const std::string& database) : fd_(open_beside(database, "-relay")) {}
  ~LockFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  LockFile(LockFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  LockFile& operator=(LockFile&&) = delete;

  [[nodiscard]] bool lock(std::string_view node) const { return control(node, F_OFD_SETLK).has_value(); }
  [[nodiscard]] bool locked(std::string_view node) const {
    const auto found = control(node, F_OFD_GETLK);
    return !found.has_value() || found->l_type != F_UNLCK;
  }

 private:
  [[nodiscard]] std::optional<struct flock> control(std::string_view node, int command) const {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(lock_number({}, node) >> 2U);
    range.l_len = 1;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg): that is what fcntl is
    if (::fcntl(fd_, command, &range) != 0) return std::nullopt;
    return range;
  }

  int fd_;
};

class HeldLock final : public NodeLocks::Held {
 public:
  explicit HeldLock(LockFile file) : file_(std::move(file)) {}
  bool still_held() noexcept override { return true; }  // as long as this process lives

 private:
  LockFile file_;
};

}  // namespace

std::unique_ptr<NodeLocks::Held> SqliteNodeLocks::hold(std::string_view node) {
  LockFile file(database_);
  if (!file.lock(node)) return nullptr;
  return std::make_unique<HeldLock>(std::move(file));
}

std::vector<std::string> SqliteNodeLocks::free(std::span<const std::string> nodes) {
  std::vector<std::string> free;
  const LockFile file(database_);
  for (const std::string& node : nodes) {
    if (!file.locked(node)) free.push_back(node);
  }
  return free;
}

}  // namespace postrider::sqlite
