// SPDX-License-Identifier: Apache-2.0
#include "relay/pair.hpp"

#include <algorithm>

namespace postrider {

Duration idle_delay(const IdleBackoff& backoff, Duration interval, std::int64_t empty_polls) {
  if (!backoff.enabled || empty_polls <= backoff.threshold) return interval;
  // In whole intervals, the first of which is not skipped: 2^n of them, at most as many as fit into the
  // maximum.
  const std::int64_t most = std::max<std::int64_t>(1, backoff.max / interval);
  std::int64_t cycles = 1;
  for (std::int64_t i = backoff.threshold; i < empty_polls && cycles < most && backoff.multiplier > 1; ++i) {
    cycles *= backoff.multiplier;
  }
  return interval * std::min(cycles, most);
}

Duration PairHealth::empty_poll() {
  ++empty_polls_;
  return idle_delay(options_->backoff, options_->polling_interval, empty_polls_);
}

Duration PairHealth::failed_poll() const {
  return idle_delay(options_->backoff, options_->polling_interval, empty_polls_);
}

void PairHealth::published() {
  empty_polls_ = 0;
  failures_ = 0;
  absences_ = 0;
  if (singly_ > 0) --singly_;
}

PairHealth::Failure PairHealth::refused(std::size_t sent, std::size_t size, bool culprit_known,
                                        double random) {
  empty_polls_ = 0;
  absences_ = 0;
  if (sent > 0) failures_ = 0;
  if (!culprit_known && size > 1) {
    singly_ = size;
    return {};
  }
  ++failures_;
  Failure failure{.counted = true};
  if (failures_ < options_->max_failures) {
    failure.delay = options_->retry_policy->delay(Attempt{failures_}, random);
  } else if (options_->poison == PoisonAction::stop) {
    failure.stop = true;
  } else {
    failure.dead_letter = true;
    failures_ = 0;
    if (singly_ > 0) --singly_;
  }
  return failure;
}

PairHealth::Failure PairHealth::unavailable(std::size_t sent, double random) {
  empty_polls_ = 0;
  absences_ = sent > 0 ? 1 : absences_ + 1;
  return {.delay = options_->retry_policy->delay(Attempt{absences_}, random)};
}

std::size_t PairHealth::batch_size(PublishMode mode) const {
  return mode == PublishMode::individual || singly_ > 0 ? 1 : options_->batch_size;
}

BackoffStatus PairHealth::backoff() const {
  const Duration delay = idle_delay(options_->backoff, options_->polling_interval, empty_polls_);
  return {.empty_polls = empty_polls_, .delay = delay, .backing_off = delay > options_->polling_interval};
}

}  // namespace postrider
