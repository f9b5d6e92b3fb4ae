// SPDX-License-Identifier: Apache-2.0
// What others hold of the dispatcher: places in its hot queue, and the time of a claim.
#include <algorithm>
#include <utility>

#include "outbox/dispatcher.hpp"

namespace postrider {

OutboxDispatcher::HotPlaces OutboxDispatcher::reserve_hot(const std::shared_ptr<OutboxDispatcher>& self,
                                                          std::span<const std::size_t> sizes) {
  const MutexLock lock(self->mutex_);
  if (!self->accepting_) return {};
  return {self, self->hot_room_.reserve(sizes, self->copies_.bytes(Source::hot))};
}

OutboxDispatcher::HotPlaces::HotPlaces(HotPlaces&& other) noexcept
    : owner_(std::move(other.owner_)), reserved_(std::exchange(other.reserved_, {})) {}

OutboxDispatcher::HotPlaces& OutboxDispatcher::HotPlaces::operator=(HotPlaces&& other) noexcept {
  if (this != &other) {
    give_back();
    owner_ = std::move(other.owner_);
    reserved_ = std::exchange(other.reserved_, {});
  }
  return *this;
}

void OutboxDispatcher::HotPlaces::give_back() noexcept {
  if (reserved_.places == 0) return;
  const MutexLock lock(owner_->mutex_);
  const QueueRoom::Reserved unused = std::exchange(reserved_, {});
  owner_->hot_room_.leave(unused.places);
  owner_->hot_room_.unreserve(unused.bytes);
}

OutboxDispatcher::ClaimWindow::ClaimWindow(OutboxDispatcher& dispatcher, std::size_t wanted)
    : dispatcher_(dispatcher) {
  const MutexLock lock(dispatcher_.mutex_);
  if (!dispatcher_.accepting_) return;
  QueueRoom& queue = dispatcher_.cold_room_;
  const ClaimSize& sizes = dispatcher_.claim_size_;
  const std::size_t held = dispatcher_.copies_.bytes(Source::cold);
  const std::size_t free = queue.free_bytes(held);
  const std::size_t fitting = std::max<std::size_t>(sizes.fitting(free), queue.empty(held) ? 1 : 0);
  const std::size_t room = std::min(queue.free_places(), fitting);
  limit_ = std::min({wanted, room, sizes.careful(free)});
  starved_ = limit_ == room && room < wanted;
  if (limit_ == 0) {
    queue.want_more();
    return;
  }
  ++dispatcher_.entrants_;
  dispatcher_.copies_.claim_begins();
}

void OutboxDispatcher::ClaimWindow::brought(std::size_t rows, std::span<const OutboxItem> events) {
  std::size_t bytes = 0;
  for (const OutboxItem& event : events) bytes += event.bytes;
  const MutexLock lock(dispatcher_.mutex_);
  dispatcher_.claim_size_.claimed(events.size(), bytes);
  // Only then: a poke after each claim that found less than it asked for would never end.
  if (starved_ && rows >= limit_) dispatcher_.cold_room_.want_more();
}

OutboxDispatcher::ClaimWindow::~ClaimWindow() {
  if (limit_ == 0) return;
  std::vector<Event> gone;  // let go without the lock
  {
    const MutexLock lock(dispatcher_.mutex_);
    gone = dispatcher_.copies_.claim_ends();
  }
  dispatcher_.leave();
}

}  // namespace postrider
