// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"
#include "postrider/storage.hpp"

namespace postrider::daemon {

/// Migrates a storage, and starts what works on it, on a thread of its own, so that the program can serve and
/// be stopped meanwhile. While the database is away it tries again and again, with growing pauses, and says
/// so in the log. Thread-safe, except for `stop`.
class StorageStarter {
 public:
  enum class State {
    trying,   ///< for the first time
    waiting,  ///< the database is away
    ready,
    failed,  ///< for good: see `failure`
  };
  struct Options {
    /// Whether to wait for a database that is away; otherwise that is a failure.
    bool wait = true;
    bool migrate = true;
    /// Part of each attempt, behind the migration. What it has begun when it throws, it undoes.
    std::function<void()> then{};
    LogCallback log{};
    Clock* clock = &Clock::system();
  };

  /// `storage` outlives it.
  StorageStarter(Storage& storage, Options options);
  ~StorageStarter() { stop(); }
  StorageStarter(const StorageStarter&) = delete;
  StorageStarter& operator=(const StorageStarter&) = delete;

  [[nodiscard]] State state() const POSTRIDER_EXCLUDES(mutex_);
  /// Waits until the first attempt has ended, one way or the other, or the time is over.
  [[nodiscard]] State await_first(Duration timeout) const POSTRIDER_EXCLUDES(mutex_);
  /// What the last attempt failed with, in words; empty when it is ready.
  [[nodiscard]] std::string trouble() const POSTRIDER_EXCLUDES(mutex_);
  /// Null unless it has failed.
  [[nodiscard]] std::exception_ptr failure() const POSTRIDER_EXCLUDES(mutex_);
  /// Waits for the attempt that is under way, and makes no other.
  void stop() POSTRIDER_EXCLUDES(mutex_);

 private:
  void run() noexcept;
  /// False when it is to end.
  [[nodiscard]] bool pause(Duration time) POSTRIDER_EXCLUDES(mutex_);
  void set(State state, std::string trouble = {}, std::exception_ptr failure = nullptr)
      POSTRIDER_EXCLUDES(mutex_);

  Storage& storage_;
  const Options options_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  State state_ POSTRIDER_GUARDED_BY(mutex_) = State::trying;
  std::string trouble_ POSTRIDER_GUARDED_BY(mutex_);
  std::exception_ptr failure_ POSTRIDER_GUARDED_BY(mutex_);
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace postrider::daemon
