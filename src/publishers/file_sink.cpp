// SPDX-License-Identifier: Apache-2.0
#include "postrider/file_sink.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "core/failpoint.hpp"
#include "core/option_check.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

namespace fs = std::filesystem;

/// Why the file is of no use at present; never leaves this file.
struct Trouble {
  std::string what;
};

[[noreturn]] void give_up(const std::string& what) {
  throw Trouble{what + ": " + std::generic_category().message(errno)};
}

class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return number_; }
  [[nodiscard]] bool open() const noexcept { return number_ >= 0; }
  void reset(int number = -1) noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

 private:
  int number_;
};

/// Gives the lock back, if it was taken and the file is still open.
class Unlock {
 public:
  explicit Unlock(const Descriptor& file) noexcept : file_(file) {}
  ~Unlock() {
    if (file_.open()) ::flock(file_.get(), LOCK_UN);
  }
  Unlock(const Unlock&) = delete;
  Unlock& operator=(const Unlock&) = delete;

 private:
  const Descriptor& file_;
};

/// The numbers of `path.1`, `path.2`, ….
std::set<std::uint64_t> renamed_files(const fs::path& path) {
  std::set<std::uint64_t> numbers;
  const std::string prefix = path.filename().string() + ".";
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    std::uint64_t number = 0;
    const char* last = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + prefix.size(), last, number);
    if (error == std::errc() && stop == last && number > 0) numbers.insert(number);
  }
  return numbers;
}

constexpr Duration longest_wait_for_lock = std::chrono::milliseconds{500};

class FileSink final : public Sink {
 public:
  explicit FileSink(FileSinkOptions options)
      : options_(std::move(options)),
        cloud_events_{.mode = CloudEventsMode::structured, .source = options_.source} {}

  /// The guard before it lets one caller in at a time.
  PublishResult send(std::span<const SinkMessage> messages) override {
    try {
      // Locked for a batch only: whoever leads next, here or on another node, shall find the file free.
      const Unlock at_the_end(file_);
      ready();
      write(messages);
      return PublishResult::all();
    } catch (const Trouble& no) {
      file_.reset();
      return PublishResult::unavailable(0, no.what);
    }
  }
  const std::string& name() const noexcept override { return options_.name; }
  void close() noexcept override POSTRIDER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    closing_.notify_all();
  }

 private:
  /// The file of that name is open, locked, whole and not full. Others write to it, cut it, rename it or
  /// leave a torn line in it while it is not locked, so nothing is known of it from the last time.
  void ready() {
    const SteadyPoint until = Clock::system().steady_now() + longest_wait_for_lock;
    constexpr int most_tries = 4;
    for (int i = 0; i < most_tries; ++i) {
      if (!file_.open()) open();
      lock(until);
      if (still_there()) {
        size_ = look().st_size;
        cut_torn_line();
        if (static_cast<std::size_t>(size_) < options_.max_bytes) return;
        rotate();
      }
      file_.reset();
    }
    throw Trouble{options_.path + " was renamed by another process or sink"};
  }
  /// A turn of somebody else is short. One who stands still in the middle of it is not waited for.
  void lock(SteadyPoint until) POSTRIDER_EXCLUDES(mutex_) {
    constexpr Duration pause = std::chrono::milliseconds{1};
    while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) give_up("cannot lock " + options_.path);
      failpoint("sink.file.busy");
      const MutexLock held(mutex_);
      const SteadyPoint now = Clock::system().steady_now();
      if (closed_ || now >= until) {
        throw Trouble{options_.path + " is being written by another process or sink"};
      }
      Clock::system().wait_until(closing_, mutex_, std::min(until, now + pause));
    }
  }
  [[nodiscard]] bool still_there() const {
    struct stat ours {};
    struct stat named {};
    return ::fstat(file_.get(), &ours) == 0 && ::stat(options_.path.c_str(), &named) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
  }
  [[nodiscard]] struct stat look() const {
    struct stat about {};
    if (::fstat(file_.get(), &about) != 0) give_up("cannot look at " + options_.path);
    return about;
  }
  void open() {
    // Without O_NONBLOCK a FIFO of that name would hold us up for ever.
    constexpr int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    file_.reset(::open(options_.path.c_str(), flags, S_IRUSR | S_IWUSR));
    if (!file_.open()) give_up("cannot open " + options_.path);
    failpoint("sink.file.opened");
    if (!S_ISREG(look().st_mode)) throw Trouble{options_.path + " is not a regular file"};
    sync_folder();
  }
  /// What stands behind the last newline was never told to be sent.
  void cut_torn_line() {
    char last = '\n';
    if (size_ > 0 && ::pread(file_.get(), &last, 1, size_ - 1) != 1) give_up("cannot read " + options_.path);
    if (last == '\n') return;  // nearly always
    std::array<char, 65'536> block{};
    off_t end = size_;
    while (end > 0) {
      const auto want = std::min<std::size_t>(block.size(), static_cast<std::size_t>(end));
      const off_t begin = end - static_cast<off_t>(want);
      if (::pread(file_.get(), block.data(), want, begin) != static_cast<ssize_t>(want)) {
        give_up("cannot read " + options_.path);
      }
      const auto newline = std::string_view(block.data(), want).rfind('\n');
      if (newline != std::string_view::npos) {
        end = begin + static_cast<off_t>(newline) + 1;
        break;
      }
      end = begin;
    }
    if (::ftruncate(file_.get(), end) != 0) give_up("cannot shorten " + options_.path);
    size_ = end;
  }
  void rotate() {
    std::set<std::uint64_t> numbers = renamed_files(options_.path);
    const std::uint64_t next = numbers.empty() ? 1 : *numbers.rbegin() + 1;
    const std::string target = options_.path + "." + std::to_string(next);
    if (::rename(options_.path.c_str(), target.c_str()) != 0) give_up("cannot rename " + options_.path);
    failpoint("sink.file.renamed");
    numbers.insert(next);
    while (options_.keep != 0 && numbers.size() > options_.keep) {
      const std::string oldest = options_.path + "." + std::to_string(*numbers.begin());
      if (::unlink(oldest.c_str()) != 0 && errno != ENOENT) give_up("cannot delete " + oldest);
      numbers.erase(numbers.begin());
    }
    sync_folder();
  }
  void sync_folder() const {
    if (!options_.sync) return;
    const fs::path path(options_.path);
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened.open() || ::fsync(opened.get()) != 0) give_up("cannot sync the folder of " + options_.path);
  }
  void write(std::span<const SinkMessage> messages) {
    constexpr std::size_t block = std::size_t{1} << 20U;
    const off_t before = size_;
    try {
      buffer_.clear();
      for (const SinkMessage& message : messages) {
        encoded_.fill(message, cloud_events_);
        append_line(encoded_.body());
        if (buffer_.size() >= block) flush();
      }
      flush();
      failpoint("sink.file.written");
      if (options_.sync && ::fdatasync(file_.get()) != 0) give_up("cannot sync " + options_.path);
    } catch (...) {
      // All or nothing, so that a full disk does not fill with repeats.
      if (::ftruncate(file_.get(), before) != 0) file_.reset();  // then the next one cuts a torn line
      size_ = before;
      throw;
    }
  }
  /// A payload may be JSON of many lines: outside of strings, a line break is a space as good as any.
  void append_line(std::string_view json) {
    const std::size_t begin = buffer_.size();
    buffer_ += json;
    std::replace_if(
        buffer_.begin() + static_cast<std::ptrdiff_t>(begin), buffer_.end(),
        [](char c) { return c == '\n' || c == '\r'; }, ' ');
    buffer_ += '\n';
  }
  void flush() {
    std::string_view rest = buffer_;
    while (!rest.empty()) {
      const ssize_t wrote = ::write(file_.get(), rest.data(), rest.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) give_up("cannot write to " + options_.path);
      rest.remove_prefix(static_cast<std::size_t>(wrote));
      size_ += wrote;
    }
    buffer_.clear();
  }

  const FileSinkOptions options_;
  const CloudEventsOptions cloud_events_;
  Mutex mutex_;
  CondVar closing_;
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
  // Of the one thread that sends.
  Descriptor file_;
  off_t size_ = 0;
  std::string buffer_;
  CloudEvent encoded_;
};

}  // namespace

std::shared_ptr<Sink> file_sink(FileSinkOptions options) {
  const OptionCheck check("FileSinkOptions");
  if (options.path.empty()) check.refuse("path", "''", "the path of a file");
  check.count("max_bytes", options.max_bytes, 1024, std::size_t{1} << 40U);
  check.count("keep", options.keep, 0, 1'000'000);
  CloudEventsOptions{.source = options.source}.check();
  SinkLimits limits = std::exchange(options.limits, {});
  return guarded_sink(std::make_shared<FileSink>(std::move(options)), std::move(limits));
}

}  // namespace postrider
