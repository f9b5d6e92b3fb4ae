// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/wake_channel.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <utility>

#include "backends/sqlite/companion_file.hpp"
#include "postrider/error.hpp"
#include "storage/wake_thread.hpp"

namespace postrider::sqlite {
namespace {

const std::string suffix = "-wake";
constexpr std::uint64_t places = 64;
constexpr Duration for_ever{-1};

[[noreturn]] void fail(const std::string& what, const std::string& hint) {
  const std::string why = std::generic_category().message(errno);
  throw Error(ErrorCode::unavailable, Error::Facts{.retryable = true}, what, why, hint);
}

/// Two topics in one place would wake each other for nothing, no more.
off_t place_of(std::string_view topic) noexcept {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : topic) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<off_t>(hash % places * sizeof(std::uint64_t));
}

/// Another one each time, of whatever process.
std::uint64_t new_number() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return static_cast<std::uint64_t>(now) ^ static_cast<std::uint64_t>(::getpid()) << 40U;
}

/// Hears of every change of the file, from its making on.
class Watch {
 public:
  explicit Watch(const std::string& path) : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    constexpr std::uint32_t written_or_gone = IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
    if (fd_ >= 0 && ::inotify_add_watch(fd_, path.c_str(), written_or_gone) >= 0) return;
    if (fd_ >= 0) ::close(fd_);
    fail("cannot watch " + path, "raise fs.inotify.max_user_instances, or live with polling");
  }
  ~Watch() { ::close(fd_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Which changes there were says the file.
  void take_all() const noexcept {
    std::array<char, 4096> changes{};
    while (::read(fd_, changes.data(), changes.size()) > 0) {
    }
  }

 private:
  int fd_;
};

[[nodiscard]] bool listen_on(const std::string& database, std::string_view topic, WakeThread& thread) {
  const WakeFile file(database);
  const Watch watch(file.path());
  std::uint64_t seen = file.number(topic);
  thread.connected();
  while (!thread.stopping() && !file.gone()) {
    if (!thread.poll_for(watch.fd(), for_ever)) continue;
    watch.take_all();
    const std::uint64_t number = file.number(topic);
    if (std::exchange(seen, number) != number) thread.wake();
  }
  return true;
}

}  // namespace

WakeFile::WakeFile(const std::string& database)
    : path_(database + suffix), fd_(open_beside(database, suffix)) {}

WakeFile::~WakeFile() {
  ::close(fd_);
}

bool WakeFile::gone() const noexcept {
  struct stat here {};
  struct stat there {};
  return ::fstat(fd_, &here) != 0 || ::stat(path_.c_str(), &there) != 0 || here.st_ino != there.st_ino ||
         here.st_dev != there.st_dev;
}

std::uint64_t WakeFile::number(std::string_view topic) const {
  std::uint64_t number = 0;  // as long as nothing was written there
  if (::pread(fd_, &number, sizeof number, place_of(topic)) < 0) fail("cannot read " + path_, {});
  return number;
}

void WakeFile::change(std::string_view topic, std::uint64_t number) const {
  if (::pwrite(fd_, &number, sizeof number, place_of(topic)) != sizeof number) {
    fail("cannot write " + path_, "is the disk full?");
  }
}

SqliteWakeChannel::SqliteWakeChannel(std::string database, LogCallback log)
    : database_(std::move(database)), log_(std::move(log)) {}

void SqliteWakeChannel::notify(std::string_view topic) {
  const MutexLock lock(mutex_);
  if (file_ == nullptr || file_->gone()) {
    file_.reset();
    file_ = std::make_unique<WakeFile>(database_);
  }
  file_->change(topic, new_number());
}

std::unique_ptr<WakeChannel::Subscription> SqliteWakeChannel::listen(std::string_view topic,
                                                                     std::function<void()> on_wake) {
  return std::make_unique<WakeThread>("file " + database_ + suffix, std::move(on_wake), log_,
                                      [database = database_, topic = std::string(topic)](WakeThread& thread) {
                                        return listen_on(database, topic, thread);
                                      });
}

}  // namespace postrider::sqlite
