// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "postrider/relay.hpp"

namespace postrider {

/// The pause after so many empty polls in a row. Pure.
[[nodiscard]] Duration idle_delay(const IdleBackoff& backoff, Duration interval, std::int64_t empty_polls);

/// What a pair remembers between two batches about how it went. Pure: no clock, no luck, no I/O.
///
/// Two things are kept apart that both mean "nothing published": an empty poll, which makes polls rarer, and
/// a failure, which has a delay of its own. An event that is refused counts; a receiver that is away does
/// not.
class PairHealth {
 public:
  /// `options.retry_policy` is set. `failures` as stored: a new leader goes on counting.
  explicit PairHealth(const PairOptions& options, std::int32_t failures = 0)
      : options_(&options), failures_(failures) {}

  /// After a poll that found nothing.
  Duration empty_poll();
  /// After a poll that could not look.
  [[nodiscard]] Duration failed_poll() const;
  /// All of the batch is with the receiver.
  void published();

  struct Failure {
    Duration delay{};
    bool counted = false;      ///< against the event behind the published ones
    bool stop = false;         ///< the pair is FAILED
    bool dead_letter = false;  ///< that event is given up
  };
  /// `sent` of `size` events went through. `culprit_known`: it is the event behind those; otherwise it is
  /// looked for, one by one.
  Failure refused(std::size_t sent, std::size_t size, bool culprit_known, double random);
  Failure unavailable(std::size_t sent, double random);

  /// How many events the next batch may have.
  [[nodiscard]] std::size_t batch_size(PublishMode mode) const;
  [[nodiscard]] std::int32_t failures() const noexcept { return failures_; }
  [[nodiscard]] BackoffStatus backoff() const;

 private:
  const PairOptions* options_;
  std::int64_t empty_polls_ = 0;
  std::int32_t failures_ = 0;
  std::int32_t absences_ = 0;
  std::size_t singly_ = 0;  // so many events go one by one, because one of them was refused
};

}  // namespace postrider
