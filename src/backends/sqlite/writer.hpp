// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "backends/sqlite/connection.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::sqlite {

/// The one connection that writes. SQLite has one writer per file: threads of this process queue for it here,
/// first come, first served, instead of beating on the file's lock; only other processes are met there.
/// Thread-safe.
class Writer {
 public:
  /// The right to use the connection; goes to the next in line on destruction.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : writer_(std::exchange(other.writer_, nullptr)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (writer_ != nullptr) writer_->release();
    }
    [[nodiscard]] Connection& connection() const noexcept { return *writer_->connection_; }

   private:
    friend class Writer;
    explicit Lease(Writer& writer) noexcept : writer_(&writer) {}
    Writer* writer_;
  };

  /// Opens the file at once, so that a wrong path is reported early.
  Writer(ConnectionOptions options, Duration acquire_timeout, Clock& clock);

  /// Waits for its turn, at most for `acquire_timeout`, then throws Error(timeout). Opens the connection anew
  /// if the last user broke it.
  [[nodiscard]] Lease acquire() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t waiting() const POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool in_use() const POSTRIDER_EXCLUDES(mutex_);

 private:
  struct Waiter {
    CondVar turn;
    bool called = false;
  };
  void wait_for_turn() POSTRIDER_EXCLUDES(mutex_);
  void release() noexcept POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] Error too_long() const POSTRIDER_REQUIRES(mutex_);

  const ConnectionOptions options_;
  const Duration acquire_timeout_;
  Clock& clock_;
  std::unique_ptr<Connection> connection_;  // whoever holds the lease owns it
  mutable Mutex mutex_;
  bool held_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::thread::id holder_ POSTRIDER_GUARDED_BY(mutex_);
  std::list<Waiter*> queue_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::sqlite
