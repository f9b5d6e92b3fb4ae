// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>

#include "shop.hpp"

namespace shop {

/// A node in a process of its own, so that killing it is the real thing.
class NodeProcess {
 public:
  /// `role` is the option that says what it is to do.
  NodeProcess(const std::string& program, const char* role, const Place& place) : pid_(::fork()) {
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a node must not outlive the show
      ::execl(program.c_str(), program.c_str(), role, place.folder.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~NodeProcess() {
    if (pid_ > 0) end(SIGKILL);
  }
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void end(int signal) {
    ::kill(pid_, signal);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  /// True once it has ended by itself.
  bool ended() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
    return pid_ < 0;
  }

 private:
  pid_t pid_;
};

}  // namespace shop
