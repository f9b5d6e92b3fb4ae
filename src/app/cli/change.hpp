// SPDX-License-Identifier: Apache-2.0
// How far a command that changes something has got, also when somebody ends it in the middle.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::cli {

/// A change under way. Thread-safe.
class Change {
 public:
  struct Reached {
    std::optional<std::int64_t> events{};  ///< nothing: they are not counted
    bool ended_early = false;              ///< because somebody wanted that
  };

  /// From now on something may be different. Whoever ends the command before that, ends it at once.
  void begin() POSTRIDER_EXCLUDES(mutex_);
  /// So many events are different by now. False: somebody wants it to end here.
  [[nodiscard]] bool go_on(std::int64_t events) POSTRIDER_EXCLUDES(mutex_);
  /// So many, and there are no more.
  void done(std::int64_t events) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] Reached reached() const POSTRIDER_EXCLUDES(mutex_);

  /// Asks for the end. False when it has not begun: then there is nothing to wait for.
  [[nodiscard]] bool interrupt() POSTRIDER_EXCLUDES(mutex_);
  /// The command has returned. False when somebody has given it up: he says how far it got.
  [[nodiscard]] bool finish() POSTRIDER_EXCLUDES(mutex_);
  /// Waits for `finish`, but not for longer; false when it was given up.
  [[nodiscard]] bool await_finish(Duration patience) POSTRIDER_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  Reached reached_ POSTRIDER_GUARDED_BY(mutex_);
  bool begun_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool wanted_to_end_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool finished_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool given_up_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

/// While it lives, SIGINT, SIGTERM and SIGHUP ask the change to end after the step that is under way, instead
/// of ending the process; a second one ends the process at once. Made before the process has other threads,
/// which inherit what it blocks.
class InterruptWatch {
 public:
  /// `give_up` is called from a thread of its own when the step does not end in time: a database that hangs.
  InterruptWatch(Change& change, std::function<void()> give_up);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// The command has returned. Does not return while the process is being ended.
  void finish();
  /// Ends the process as the signal would have done it.
  [[noreturn]] void die() const;

 private:
  void watch();

  Change& change_;
  const std::function<void()> give_up_;
  sigset_t signals_{};
  sigset_t before_{};
  int signal_ = 0;  // the watching thread's until it is joined
  std::thread thread_;
};

}  // namespace postrider::cli
