// SPDX-License-Identifier: Apache-2.0
#include "storage/wake_thread.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "core/what_of.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;

constexpr Duration first_pause = 100ms;
constexpr Duration longest_pause = 10s;
constexpr Duration for_ever{-1};

}  // namespace

WakeThread::WakeThread(std::string name, std::function<void()> on_wake, LogCallback log, Session session)
    : name_(std::move(name)),
      on_wake_(std::move(on_wake)),
      log_(std::move(log)),
      session_(std::move(session)),
      pause_(first_pause),
      thread_([this](const std::stop_token& stop) {
        thread_stop_ = stop;
        run();
      }) {}

WakeThread::~WakeThread() {
  thread_.request_stop();
  signal_.raise();
}

void WakeThread::run() {
  while (!stopping()) {
    try {
      if (!session_(*this)) {
        wake();
        while (!stopping()) (void)poll_for(-1, for_ever);
        return;
      }
    } catch (const std::exception& error) {
      complain(what_of(error));
    }
    if (!stopping()) (void)poll_for(-1, pause_);
    pause_ = std::min(2 * pause_, longest_pause);
  }
}

void WakeThread::connected() noexcept {
  pause_ = first_pause;
  complained_ = false;
  wake();  // something may have been missed before
}

void WakeThread::wake() noexcept {
  try {
    on_wake_();
  } catch (const std::exception& error) {
    say(LogLevel::error, "what " + name_ + " was to wake has thrown: " + what_of(error));
  }
}

bool WakeThread::poll_for(int fd, Duration longest) const {
  std::array<pollfd, 2> fds{pollfd{signal_.fd(), POLLIN, 0}, pollfd{fd, POLLIN, 0}};
  const auto millis =
      longest < Duration{0} ? -1 : std::chrono::ceil<std::chrono::milliseconds>(longest).count();
  const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(millis));
  return ready > 0 && fds[1].revents != 0;
}

void WakeThread::complain(const std::string& why) {
  if (std::exchange(complained_, true)) return;
  say(LogLevel::warning, "cannot hear of other nodes (" + name_ + "), trying again: " + why);
}

void WakeThread::say(LogLevel level, const std::string& what) const {
  if (log_) log_(level, "postrider: " + what);
}

}  // namespace postrider
