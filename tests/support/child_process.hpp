// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace postrider::test {

/// How a process ended.
struct ProcessEnd {
  bool exited = false;  ///< by itself, with `code`
  int code = 0;
  int signal = 0;  ///< else: by this signal

  [[nodiscard]] bool ok() const noexcept { return exited && code == 0; }
  [[nodiscard]] bool killed() const noexcept;  ///< by SIGKILL
  [[nodiscard]] std::string text() const;
};

/// A program of our own, with a pipe to its stdin and one from its stdout. Killed and reaped when this object
/// dies, and killed by the kernel when the thread that made it dies first, so that none is ever left behind.
/// Used by one thread.
class ChildProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  using Timeout = std::chrono::milliseconds;

  /// Starts `argv[0]` with this environment on top of ours. Throws std::system_error when it cannot be
  /// started.
  explicit ChildProcess(const std::vector<std::string>& argv, const Environment& extra = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// The next line of its stdout, without the newline. Empty when its stdout is at an end, or when the time
  /// is over: ask `at_end` which.
  [[nodiscard]] std::optional<std::string> read_line(Timeout timeout = std::chrono::seconds{60});
  [[nodiscard]] bool at_end() const noexcept { return at_end_; }
  /// Reads until a line begins with `prefix`, behind the time that a log has there, and returns that line;
  /// empty as above.
  [[nodiscard]] std::optional<std::string> read_until(const std::string& prefix,
                                                      Timeout timeout = std::chrono::seconds{60});
  /// The last lines that were read, for a message about those that did not come.
  [[nodiscard]] std::string recent_lines() const;
  /// Reads `count` lines, whatever they say. Returns how many came.
  std::size_t skip_lines(std::size_t count, Timeout timeout = std::chrono::seconds{60});

  /// To its stdin. False when it does not read any more.
  bool write_line(const std::string& line);
  void close_stdin() noexcept;

  void signal(int number) noexcept;
  /// SIGSTOP; returns when it stands still. `signal(SIGCONT)` lets it go on.
  void freeze();
  /// Waits for its end, reading what it still says. Empty when the time is over.
  [[nodiscard]] std::optional<ProcessEnd> wait(Timeout timeout = std::chrono::seconds{60});
  /// SIGKILL, and how it ended: perhaps by itself, just before.
  ProcessEnd kill();

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
  std::string buffer_;
  std::deque<std::string> recent_;
  bool at_end_ = false;
  std::optional<ProcessEnd> end_;
};

}  // namespace postrider::test
