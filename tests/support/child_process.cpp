// SPDX-License-Identifier: Apache-2.0
#include "support/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace postrider::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 3'600'000));
}

/// True when something can be read (or the other end is closed), false when the time is over.
bool await_readable(int fd, Clock::time_point deadline) {
  for (;;) {
    pollfd entry{fd, POLLIN, 0};
    const int ready = ::poll(&entry, 1, milliseconds_until(deadline));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) fail("poll");
  }
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> environment_with(const ChildProcess::Environment& extra) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::string name = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(extra.begin(), extra.end(), [&](const auto& e) { return e.first == name; });
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : extra) all.push_back(name + "=" + value);
  return all;
}

/// In the child, between fork and exec: system calls only.
[[noreturn]] void become(char** argv, char** envp, int in, int out, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(125);  // it died before the line above
  if (::dup2(in, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0) ::_exit(126);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(argv[0], argv, envp);
  ::_exit(127);
}

}  // namespace

bool ProcessEnd::killed() const noexcept {
  return !exited && signal == SIGKILL;
}

std::string ProcessEnd::text() const {
  return exited ? "exit code " + std::to_string(code) : "signal " + std::to_string(signal);
}

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const Environment& extra) {
  std::vector<std::string> arguments = argv;
  std::vector<std::string> environment = environment_with(extra);
  const std::vector<char*> argument_list = pointers(arguments);
  const std::vector<char*> environment_list = pointers(environment);

  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0) fail("pipe2");
  if (::pipe2(out.data(), O_CLOEXEC) != 0) {
    ::close(in[0]);
    ::close(in[1]);
    fail("pipe2");
  }
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0)
    become(const_cast<char**>(argument_list.data()), const_cast<char**>(environment_list.data()), in[0],
           out[1], parent);
  const int error = errno;
  ::close(in[0]);
  ::close(out[1]);
  to_child_ = in[1];
  from_child_ = out[0];
  if (pid_ < 0) {
    ::close(to_child_);
    ::close(from_child_);
    errno = error;
    fail("fork");
  }
}

ChildProcess::~ChildProcess() {
  kill();
  close_stdin();
  ::close(from_child_);
}

bool ChildProcess::fill(Clock::time_point deadline) {
  if (at_end_ || !await_readable(from_child_, deadline)) return false;
  std::array<char, 4096> chunk{};
  const ssize_t got = ::read(from_child_, chunk.data(), chunk.size());
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) {
    at_end_ = true;
    return false;
  }
  buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> ChildProcess::read_line(Timeout timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      constexpr std::size_t kept = 60;
      if (recent_.size() == kept) recent_.pop_front();
      recent_.push_back(line);
      return line;
    }
    if (!fill(deadline)) return std::nullopt;
  }
}

std::string ChildProcess::recent_lines() const {
  std::string lines;
  for (const std::string& line : recent_) lines += "  | " + line + "\n";
  return lines + "  | " + buffer_;
}

std::optional<std::string> ChildProcess::read_until(const std::string& prefix, Timeout timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  while (auto line = read_line(std::chrono::milliseconds{milliseconds_until(deadline)})) {
    if (line->starts_with(prefix)) return line;
    // A program's log has the time of each line in front.
    const std::size_t time = line->find("Z postrider ");
    if (time != std::string::npos && std::string_view(*line).substr(time + 2).starts_with(prefix))
      return line;
  }
  return std::nullopt;
}

std::size_t ChildProcess::skip_lines(std::size_t count, Timeout timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  for (std::size_t i = 0; i < count; ++i) {
    if (!read_line(std::chrono::milliseconds{milliseconds_until(deadline)})) return i;
  }
  return count;
}

bool ChildProcess::write_line(const std::string& line) {
  if (to_child_ < 0) return false;
  // A child that is gone must not end us by SIGPIPE.
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  const std::string text = line + "\n";
  const ssize_t written = ::write(to_child_, text.data(), text.size());
  ::sigaction(SIGPIPE, &before, nullptr);
  return written == static_cast<ssize_t>(text.size());
}

void ChildProcess::close_stdin() noexcept {
  if (to_child_ >= 0) ::close(std::exchange(to_child_, -1));
}

void ChildProcess::signal(int number) noexcept {
  if (!end_) ::kill(pid_, number);  // not reaped yet, so the number is still its own
}

void ChildProcess::freeze() {
  signal(SIGSTOP);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED) != 0) {
    if (errno != EINTR) fail("waitid");
  }
}

std::optional<ProcessEnd> ChildProcess::wait(Timeout timeout) {
  if (end_) return end_;
  const Clock::time_point deadline = Clock::now() + timeout;
  // A descriptor of the process becomes readable when it ends; its stdout is drained meanwhile, or it could
  // not end.
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (handle < 0) fail("pidfd_open");
  bool over = false;
  while (!over && Clock::now() < deadline) {
    std::array<pollfd, 2> entries{pollfd{handle, POLLIN, 0}, pollfd{at_end_ ? -1 : from_child_, POLLIN, 0}};
    if (::poll(entries.data(), entries.size(), milliseconds_until(deadline)) < 0 && errno != EINTR) break;
    if (entries[1].revents != 0) fill(Clock::now());
    over = entries[0].revents != 0;
  }
  ::close(handle);
  if (!over) return std::nullopt;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid");
  }
  while (fill(Clock::now())) {
  }
  end_ =
      WIFEXITED(status) ? ProcessEnd{true, WEXITSTATUS(status), 0} : ProcessEnd{false, 0, WTERMSIG(status)};
  return end_;
}

ProcessEnd ChildProcess::kill() {
  signal(SIGKILL);
  int status = 0;
  if (!end_) {
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    end_ =
        WIFEXITED(status) ? ProcessEnd{true, WEXITSTATUS(status), 0} : ProcessEnd{false, 0, WTERMSIG(status)};
  }
  return *end_;
}

}  // namespace postrider::test
