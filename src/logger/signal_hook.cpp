// SPDX-License-Identifier: Apache-2.0
#include "logger/signal_hook.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include "postrider/detail/sync.hpp"

namespace postrider::logger {
namespace {

constexpr std::array<int, 2> hooked{SIGTERM, SIGINT};

// What the handler reads. Set while it is not installed.
std::array<int, 2> pipe_ends{-1, -1};
std::array<struct sigaction, 2> before{};
std::atomic<pid_t> installed_by{0};

void restore() {
  for (std::size_t i = 0; i < hooked.size(); ++i) ::sigaction(hooked.at(i), &before.at(i), nullptr);
}

/// It may do no more than write into a pipe. In a child of the process nobody reads that, and the parent,
/// which does, was not meant.
void on_signal(int number) {
  const int saved = errno;
  if (::getpid() != installed_by.load()) {
    restore();
    ::raise(number);
  } else {
    const auto byte = static_cast<char>(number);
    if (::write(pipe_ends[1], &byte, 1) < 0) {
      // The pipe is full of signals already.
    }
  }
  errno = saved;
}

/// The signals are the process's, and so is this.
class Switchboard {
 public:
  void add(SignalHook& hook) POSTRIDER_EXCLUDES(lifecycle_, running_) {
    const MutexLock lock(lifecycle_);
    bool first = false;
    {
      const MutexLock running(running_);
      first = hooks_.empty();
      hooks_.push_back(&hook);
    }
    if (first) install();
  }
  void remove(SignalHook& hook) POSTRIDER_EXCLUDES(lifecycle_, running_) {
    const MutexLock lock(lifecycle_);
    bool last = false;
    {
      const MutexLock running(running_);
      std::erase(hooks_, &hook);
      last = hooks_.empty();
    }
    if (last) uninstall();
  }

 private:
  void install() POSTRIDER_REQUIRES(lifecycle_) {
    if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return;  // the signals stay as they are
    installed_by = ::getpid();
    thread_ = std::thread([this] { wait(); });
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < hooked.size(); ++i) {
      ::sigaction(hooked.at(i), nullptr, &before.at(i));
      // Who ignores a signal goes on after it, and wants to log: a shell starts what runs in the background
      // so.
      if (before.at(i).sa_handler != SIG_IGN) ::sigaction(hooked.at(i), &action, nullptr);
    }
  }
  void uninstall() POSTRIDER_REQUIRES(lifecycle_) {
    if (!thread_.joinable()) return;
    restore();
    const char end = 0;
    if (::write(pipe_ends[1], &end, 1) < 0) {
      // The thread has been told by a signal already.
    }
    thread_.join();
    for (const int end_of_pipe : pipe_ends) ::close(end_of_pipe);
  }
  void wait() POSTRIDER_EXCLUDES(running_) {
    char number = 0;
    while (::read(pipe_ends[0], &number, 1) < 0 && errno == EINTR) {
    }
    if (number == 0) return;
    {
      const MutexLock running(running_);
      for (const SignalHook* const hook : hooks_) hook->run();
    }
    restore();
    ::raise(number);
  }

  Mutex lifecycle_;  // of the thread and the handler
  std::thread thread_ POSTRIDER_GUARDED_BY(lifecycle_);
  Mutex running_;  // held while they run
  std::vector<SignalHook*> hooks_ POSTRIDER_GUARDED_BY(running_);
};

/// Never ended: a logger may outlive the objects of static duration.
Switchboard& switchboard() {
  static auto* const the_one = new Switchboard;
  return *the_one;
}

}  // namespace

SignalHook::SignalHook(std::function<void()> run) : run_(std::move(run)) {
  switchboard().add(*this);
}

SignalHook::~SignalHook() {
  switchboard().remove(*this);
}

}  // namespace postrider::logger
