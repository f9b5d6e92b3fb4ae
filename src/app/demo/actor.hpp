// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>

#include "app/demo/stage.hpp"

namespace postrider::demo {

/// Somebody in a process of its own, so that killing it is the real thing. Used by the thread that made it,
/// with which it dies at the latest.
class Actor {
 public:
  /// `role` is what the hidden option of `postrider demo` calls it.
  Actor(const Stage& stage, const char* role) {
    const char* const program = stage.program().c_str();
    const char* const folder = stage.place().folder.c_str();
    // The parent has threads: from here to exec only what is safe in a signal handler.
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execl(program, program, "demo", "--role", role, "--folder", folder, nullptr);
      ::_exit(127);
    }
  }
  ~Actor() {
    if (pid_ > 0) end(SIGKILL);
  }
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  void end(int signal) {
    if (pid_ < 0) return;
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
  pid_t pid_ = -1;
};

}  // namespace postrider::demo
