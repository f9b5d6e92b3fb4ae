// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "postrider/clock.hpp"

namespace postrider::daemon {

/// When events come back that one sink did not take because it is away, and when those are recalled that were
/// put off further than it turned out to be needed. Does no I/O, has no clock, is not thread-safe.
///
/// A few come back when the sink has asked for them, so that it is seen when it takes events again. The
/// others rest for as long as it has been away already, up to `longest_rest`: each return is a claim and a
/// write for nothing, and of an event with followers also of theirs. Of a backlog no more than `per_second`
/// come back, however long it is. Nothing is put off further than `horizon` behind what was asked for; what
/// does not fit into that time at `per_second` is spread evenly over it.
///
/// When the sink answers again, the backlog must not wait for its time: it is recalled.
class Parking {
 public:
  static constexpr std::uint32_t per_second = 500;
  static constexpr std::chrono::seconds horizon = std::chrono::minutes{5};
  /// So many come back in a second when the sink has asked for them: more than one, for it may be cancelled.
  static constexpr std::uint32_t probes_per_second = 4;
  static constexpr Duration longest_rest = std::chrono::minutes{1};
  /// So many times in a second some of its events fall due, together: one claim brings them.
  static constexpr std::uint32_t shares_per_second = 4;
  /// What comes back within this time is not worth a recall.
  static constexpr Duration soon = std::chrono::seconds{5};
  /// Between the end of a recall and the next one, for a sink that comes and goes.
  static constexpr Duration between_recalls = std::chrono::seconds{5};
  /// A recall goes on although the sink was away for so long: it may have been one event, or the sink's rate.
  static constexpr Duration flicker = std::chrono::seconds{1};

  /// The sink was away: returns after which time the event comes back.
  Duration park(Duration asked, SteadyPoint now) {
    if (!away_since_) away_since_ = now;
    counts_.erase(counts_.begin(), counts_.lower_bound(second_of(now)));
    const SteadyPoint asked_for = now + std::max(asked, Duration::zero());
    const SteadyPoint earliest = std::max(asked_for, now + rest(asked_for, now));
    const std::int64_t second =
        emptiest_of(second_of(earliest), second_of(asked_for) + std::int64_t{horizon.count()});
    const std::uint32_t place = counts_[second]++ % per_second;
    const std::uint32_t share = place * shares_per_second / per_second;
    const SteadyPoint slot = SteadyPoint(std::chrono::seconds{second}) +
                             std::chrono::milliseconds{share * 1000 / shares_per_second};
    const Duration delay = std::chrono::ceil<Duration>(std::max(slot, earliest) - now);
    if (delay > soon) owed_ = true;
    return delay;
  }

  /// The sink has taken an event, or refused it: it is there.
  void answered() {
    seen_ = true;
    away_since_.reset();
    counts_.clear();
    choice_.reset();
  }

  /// Somebody says that the sink is worth another try: what waits for it is recalled, whether it was seen or
  /// not.
  void revive() {
    answered();
    owed_ = true;
  }
  [[nodiscard]] bool away() const noexcept { return away_since_.has_value(); }

  /// When events are to be recalled; not set as long as there is no need, or the sink is away.
  [[nodiscard]] std::optional<SteadyPoint> recall_at() const {
    if (!owed_ || !seen_ || away_since_) return std::nullopt;
    return next_recall_;
  }
  void recall_begins() { owed_ = false; }
  /// Whether one that has begun makes sense still.
  [[nodiscard]] bool goes_on(SteadyPoint now) const { return !away_since_ || now - *away_since_ < flicker; }
  enum class RecallEnd : std::uint8_t { found_none, found_some, unfinished };
  /// One that has found events is followed by another: the result of some may have been on its way into the
  /// database, and some under somebody's lock.
  void recall_ended(RecallEnd end, SteadyPoint now) {
    const bool second_look = end == RecallEnd::found_some && !second_look_;
    if (second_look || end == RecallEnd::unfinished) owed_ = true;
    if (end != RecallEnd::unfinished) second_look_ = second_look;
    next_recall_ = now + between_recalls;
  }

 private:
  /// None for those that the sink is asked by.
  [[nodiscard]] Duration rest(SteadyPoint asked_for, SteadyPoint now) const {
    const auto then = counts_.find(second_of(asked_for));
    if (then == counts_.end() || then->second < probes_per_second) return {};
    return std::min<Duration>(std::chrono::floor<Duration>(now - *away_since_), longest_rest);
  }
  static std::int64_t second_of(SteadyPoint when) {
    return std::chrono::floor<std::chrono::seconds>(when.time_since_epoch()).count();
  }
  /// The first that has room; when all are full, the first of those that are the least overfull.
  [[nodiscard]] std::int64_t emptiest_of(std::int64_t first, std::int64_t end) {
    if (!choice_ || choice_->from != first || counts_[choice_->second] / per_second != choice_->layers) {
      choice_ = choose(first, end);
    }
    return choice_->second;
  }
  struct Choice {
    std::int64_t from;
    std::int64_t second;
    std::uint32_t layers;  ///< it is full so many times
  };
  [[nodiscard]] Choice choose(std::int64_t first, std::int64_t end) const {
    std::optional<Choice> best;
    auto at = counts_.lower_bound(first);
    for (std::int64_t second = first; second < end; ++second) {
      const bool none = at == counts_.end() || at->first != second;
      const std::uint32_t layers = none ? 0 : at->second / per_second;
      if (!best || layers < best->layers) best = {.from = first, .second = second, .layers = layers};
      if (layers == 0) break;
      ++at;
    }
    return *best;
  }

  std::map<std::int64_t, std::uint32_t> counts_;  // how many come back in which second of steady time
  std::optional<Choice> choice_;  // holds until that second is full once more: many come at the same time
  std::optional<SteadyPoint> away_since_;
  bool seen_ = false;  // it has answered
  bool owed_ = true;   // events may have been put off far: an earlier process may have done it
  bool second_look_ = false;
  SteadyPoint next_recall_{};
};

}  // namespace postrider::daemon
