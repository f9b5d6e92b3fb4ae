// SPDX-License-Identifier: Apache-2.0
#include "publishers/rabbitmq/watchdog.hpp"

#include <sys/socket.h>

namespace postrider {

Watchdog::~Watchdog() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    thread.swap(thread_);
  }
  changed_.notify_all();
  if (thread.joinable()) thread.join();
}

void Watchdog::watch(int socket) {
  const MutexLock lock(mutex_);
  socket_ = socket;
  if (closed_) shut();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void Watchdog::forget() {
  const MutexLock lock(mutex_);
  socket_ = -1;
  deadline_.reset();
}

void Watchdog::set(SteadyPoint deadline) {
  const MutexLock lock(mutex_);
  // One that moves away is found out when the time has come that was set first.
  const bool sooner = !deadline_ || deadline < *deadline_;
  deadline_ = deadline;
  if (sooner) changed_.notify_all();
}

void Watchdog::rest() {
  const MutexLock lock(mutex_);
  deadline_.reset();
}

void Watchdog::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  shut();
}

bool Watchdog::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

void Watchdog::shut() {
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

void Watchdog::run() {
  Clock& clock = Clock::system();
  const MutexLock lock(mutex_);
  while (!ending_) {
    if (!deadline_) {
      changed_.wait(mutex_);
    } else if (clock.steady_now() >= *deadline_) {
      shut();
      deadline_.reset();
    } else {
      clock.wait_until(changed_, mutex_, *deadline_);
    }
  }
}

}  // namespace postrider
