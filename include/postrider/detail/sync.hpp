// SPDX-License-Identifier: Apache-2.0
// A mutex, its lock and its condition variable, annotated for clang's thread-safety analysis
// (the standard ones are not annotated in libstdc++). Nothing here but the annotations is ours.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define POSTRIDER_TSA(x) __attribute__((x))
#else
#define POSTRIDER_TSA(x)
#endif

#define POSTRIDER_GUARDED_BY(m) POSTRIDER_TSA(guarded_by(m))
#define POSTRIDER_REQUIRES(...) POSTRIDER_TSA(requires_capability(__VA_ARGS__))
#define POSTRIDER_EXCLUDES(...) POSTRIDER_TSA(locks_excluded(__VA_ARGS__))

namespace postrider {

class POSTRIDER_TSA(capability("mutex")) Mutex {
 public:
  void lock() POSTRIDER_TSA(acquire_capability()) { native_.lock(); }
  void unlock() POSTRIDER_TSA(release_capability()) { native_.unlock(); }
  [[nodiscard]] bool try_lock() POSTRIDER_TSA(try_acquire_capability(true)) { return native_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex native_;
};

class POSTRIDER_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) POSTRIDER_TSA(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() POSTRIDER_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits may wake without cause: always wait in a loop over the condition.
class CondVar {
 public:
  void notify_one() noexcept { native_.notify_one(); }
  void notify_all() noexcept { native_.notify_all(); }

  void wait(Mutex& mutex) POSTRIDER_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native_, std::adopt_lock);
    native_.wait(lock);
    lock.release();
  }

  /// Returns false when the deadline passed. In real time: wait through `Clock::wait_until` where tests drive
  /// time.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline) POSTRIDER_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native_, std::adopt_lock);
    const auto status = native_.wait_until(lock, deadline);
    lock.release();
    return status == std::cv_status::no_timeout;
  }

 private:
  std::condition_variable native_;
};

}  // namespace postrider
