// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/writer.hpp"

#include <algorithm>
#include <utility>

namespace postrider::sqlite {
namespace {

constexpr Duration patience_with_itself = std::chrono::milliseconds{100};

}  // namespace

Writer::Writer(ConnectionOptions options, Duration acquire_timeout, Clock& clock)
    : options_(std::move(options)),
      acquire_timeout_(acquire_timeout),
      clock_(clock),
      connection_(std::make_unique<Connection>(options_)) {}

Writer::Lease Writer::acquire() {
  wait_for_turn();
  Lease lease(*this);
  if (connection_ == nullptr) connection_ = std::make_unique<Connection>(options_);
  connection_->require_file();
  return lease;
}

void Writer::wait_for_turn() {
  const SteadyPoint begin = clock_.steady_now();
  const MutexLock lock(mutex_);
  // Waiting for oneself is in vain, unless the transaction has been handed to another thread.
  const bool own = held_ && holder_ == std::this_thread::get_id();
  const SteadyPoint deadline =
      begin + (own ? std::min(acquire_timeout_, patience_with_itself) : acquire_timeout_);
  if (held_) {
    Waiter self;
    const auto place = queue_.insert(queue_.end(), &self);
    while (!self.called) {
      if (clock_.steady_now() >= deadline) {
        queue_.erase(place);
        throw too_long();
      }
      clock_.wait_until(self.turn, mutex_, deadline);
    }
  }
  held_ = true;
  holder_ = std::this_thread::get_id();
}

void Writer::release() noexcept {
  if (connection_ != nullptr && !connection_->usable()) connection_.reset();
  const MutexLock lock(mutex_);
  if (queue_.empty()) {
    held_ = false;
    return;
  }
  // Handed over without letting go, so that nobody who comes late can slip in.
  holder_ = {};
  Waiter& next = *queue_.front();
  queue_.pop_front();
  next.called = true;
  next.turn.notify_one();
}

Error Writer::too_long() const {
  const bool own = holder_ == std::this_thread::get_id();
  return {
      ErrorCode::timeout,
      {.retryable = !own},
      "cannot write to " + options_.name,
      own ? "this thread has another transaction open, and SQLite takes one at a time"
          : "other transactions of this process were in the way for too long, and SQLite takes one at a time",
      own ? "commit or roll back the first one before you begin the next, or do both in one"
          : "keep transactions short, or raise StorageOptions::acquire_timeout"};
}

std::size_t Writer::waiting() const {
  const MutexLock lock(mutex_);
  return queue_.size();
}

bool Writer::in_use() const {
  const MutexLock lock(mutex_);
  return held_;
}

}  // namespace postrider::sqlite
