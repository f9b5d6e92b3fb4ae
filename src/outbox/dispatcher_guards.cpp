// SPDX-License-Identifier: Apache-2.0
// What others hold of the dispatcher: places in its hot queue, and the time of a claim.
#include <utility>

#include "outbox/dispatcher.hpp"

namespace postrider {

OutboxDispatcher::HotPlaces::HotPlaces(HotPlaces&& other) noexcept
    : owner_(std::move(other.owner_)), count_(std::exchange(other.count_, 0)) {}

OutboxDispatcher::HotPlaces& OutboxDispatcher::HotPlaces::operator=(HotPlaces&& other) noexcept {
  if (this != &other) {
    give_back();
    owner_ = std::move(other.owner_);
    count_ = std::exchange(other.count_, 0);
  }
  return *this;
}

void OutboxDispatcher::HotPlaces::give_back() noexcept {
  if (count_ == 0) return;
  const MutexLock lock(owner_->mutex_);
  owner_->hot_used_ -= std::exchange(count_, 0);
}

OutboxDispatcher::ClaimWindow::ClaimWindow(OutboxDispatcher& dispatcher) : dispatcher_(dispatcher) {
  const MutexLock lock(dispatcher_.mutex_);
  if (!dispatcher_.accepting_) return;
  room_ = dispatcher_.options_.cold_capacity - dispatcher_.cold_used_;
  if (room_ == 0) return;
  ++dispatcher_.entrants_;
  dispatcher_.copies_.claim_begins();
}

OutboxDispatcher::ClaimWindow::~ClaimWindow() {
  if (room_ == 0) return;
  {
    const MutexLock lock(dispatcher_.mutex_);
    dispatcher_.copies_.claim_ends();
  }
  dispatcher_.leave();
}

}  // namespace postrider
