// SPDX-License-Identifier: Apache-2.0
#include "logger/signal_hook.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

namespace postrider::logger {
namespace {

constexpr std::array<int, 2> hooked{SIGTERM, SIGINT};
// A handler may do no more than write into a pipe.
std::atomic<bool> taken{false};
std::array<int, 2> pipe_ends{-1, -1};
std::array<struct sigaction, 2> before{};

void on_signal(int number) {
  const int saved = errno;
  const auto byte = static_cast<char>(number);
  if (::write(pipe_ends[1], &byte, 1) < 0) {
    // The pipe is full of signals already.
  }
  errno = saved;
}

void restore() {
  for (std::size_t i = 0; i < hooked.size(); ++i) ::sigaction(hooked.at(i), &before.at(i), nullptr);
}

}  // namespace

SignalHook::SignalHook(std::function<void()> run) : run_(std::move(run)) {
  if (taken.exchange(true)) return;
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    taken = false;
    return;
  }
  installed_ = true;
  thread_ = std::thread([this] {
    char number = 0;
    while (::read(pipe_ends[0], &number, 1) < 0 && errno == EINTR) {
    }
    if (number == 0) return;
    run_();
    restore();
    ::raise(number);
  });
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < hooked.size(); ++i) ::sigaction(hooked.at(i), &action, &before.at(i));
}

SignalHook::~SignalHook() {
  if (!installed_) return;
  restore();
  const char end = 0;
  if (::write(pipe_ends[1], &end, 1) < 0) {
    // The thread has been told by a signal already.
  }
  thread_.join();
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  taken = false;
}

}  // namespace postrider::logger
