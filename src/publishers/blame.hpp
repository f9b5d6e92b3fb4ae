// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "postrider/clock.hpp"
#include "postrider/sink.hpp"

namespace postrider {

/// Whose fault it is that a receiver fails with an event: its own, when it has taken no others of late; the
/// event's, when it has taken others since it failed with this one before. So no event dies of a receiver
/// that fails with everything, and one that it cannot digest dies when others come, and keeps none of them
/// waiting. Time comes with the calls, no I/O; not thread-safe.
class Blame {
 public:
  /// Of those it failed with so many are remembered. One that was forgotten is given one more try.
  static constexpr std::size_t most = 10'000;
  /// So long a receiver that has taken others is not taken for away, however many it fails with: they may be
  /// all that is tried at a time.
  static constexpr Duration alive_for = std::chrono::seconds{10};

  /// The receiver has this one.
  void taken(const SinkMessage& message, SteadyPoint now) {
    ++taken_;
    last_taken_ = now;
    if (!failed_.empty()) failed_.erase(message.event->id().str());
  }

  enum class Of : std::uint8_t {
    event,     ///< others were taken since it failed with this one before
    open,      ///< others were taken shortly before it failed with this one, now or earlier
    receiver,  ///< none were
  };
  struct Verdict {
    Of of;
    std::uint32_t times;  ///< that it has failed with this one
  };
  /// The receiver has failed with this one.
  [[nodiscard]] Verdict failed(const SinkMessage& message, SteadyPoint now) {
    const auto [known, first] = failed_.try_emplace(message.event->id().str());
    Failure& failure = known->second;
    ++failure.times;
    const bool others_since = !first && failure.taken != taken_;
    failure.taken = taken_;
    failure.suspect = failure.suspect || others_since || alive(now);
    const Verdict verdict{
        others_since ? Of::event : (failure.suspect ? Of::open : Of::receiver),
        failure.times,
    };
    if (first) {
      order_.push_back(known->first);
      forget_old();
    }
    return verdict;
  }
  [[nodiscard]] bool alive(SteadyPoint now) const { return last_taken_ && now - *last_taken_ <= alive_for; }

 private:
  struct Failure {
    std::uint64_t taken = 0;  ///< by the receiver, when it last failed with this one
    std::uint32_t times = 0;
    bool suspect = false;  ///< that it fails with this one says nothing about the receiver
  };
  void forget_old() {
    while (order_.size() > most) {
      failed_.erase(order_.front());
      order_.pop_front();
    }
  }

  std::uint64_t taken_ = 0;
  std::optional<SteadyPoint> last_taken_;
  std::unordered_map<std::string, Failure> failed_;
  std::deque<std::string> order_;  // also of those that were taken since: bounds both
};

}  // namespace postrider
