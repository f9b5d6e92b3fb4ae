// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/parking.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::daemon {

/// How the error of an event begins, or a part of it, that waits because this sink is away. Not the error of
/// one that it refuses: that waits for its next attempt, which is not to come sooner.
[[nodiscard]] inline std::string error_of_away(const std::string& sink) {
  return "sink " + sink + ": ";
}

/// The Parking of each sink of the outbox, by number. Told by workers what becomes of events; whoever recalls
/// events waits here for work. Thread-safe; nothing but `next` waits.
class ParkedSinks {
 public:
  /// `clock` outlives it.
  explicit ParkedSinks(Clock& clock) : clock_(clock) {}

  /// Its number: 0, 1, …
  std::size_t add(std::string name) POSTRIDER_EXCLUDES(mutex_);

  /// The sink was away: returns after which time the event comes back.
  [[nodiscard]] Duration park(std::size_t sink, Duration asked) POSTRIDER_EXCLUDES(mutex_);
  /// The sink has taken an event, or refused it: it is there.
  void answered(std::size_t sink) POSTRIDER_EXCLUDES(mutex_);

  /// Of one worker, as long as it sends something to a sink. While the sink is away one at a time may: it may
  /// be one that hangs, and would keep all of them from the events of the others.
  class Asking {
   public:
    Asking(ParkedSinks& sinks, std::size_t sink);
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    [[nodiscard]] bool allowed() const noexcept { return allowed_; }

   private:
    ParkedSinks& sinks_;
    const std::size_t sink_;
    bool alone_ = false;
    bool allowed_ = true;
  };

  /// All sinks are worth another try, see Parking.
  void revive() POSTRIDER_EXCLUDES(mutex_);

  struct Recall {
    std::size_t sink;
    std::string name;
  };
  /// Waits until events of a sink are to be recalled, and begins with it. None after `close`.
  [[nodiscard]] std::optional<Recall> next() POSTRIDER_EXCLUDES(mutex_);
  /// Whether the recall that has begun makes sense still.
  [[nodiscard]] bool goes_on(std::size_t sink) const POSTRIDER_EXCLUDES(mutex_);
  /// See Parking::recall_ended.
  void ended(std::size_t sink, Parking::RecallEnd end) POSTRIDER_EXCLUDES(mutex_);

  void open() POSTRIDER_EXCLUDES(mutex_);
  void close() POSTRIDER_EXCLUDES(mutex_);

 private:
  struct Sink {
    std::string name;
    Parking parking{};
    bool asked = false;  ///< by one, alone
  };

  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::vector<Sink> sinks_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::daemon
