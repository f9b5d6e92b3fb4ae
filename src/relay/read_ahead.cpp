// SPDX-License-Identifier: Apache-2.0
#include "relay/read_ahead.hpp"

#include <algorithm>
#include <utility>

namespace postrider {

using State = ReadAhead::Page::State;

bool ReadAhead::expect(Lane& lane, std::size_t pair, Position after) {
  lane.next = after;
  return want(lane, pair);
}

bool ReadAhead::want(Lane& lane, std::size_t pair) {
  if (!lane.next.has_value() || lane.pages.size() >= pages_per_pair || pages_ >= max_pages_) return false;
  auto page = std::make_shared<Page>(Page{.pair = pair, .after = *std::exchange(lane.next, std::nullopt)});
  ++pages_;
  lane.pages.push_back(page);
  wanted_.push_back(std::move(page));
  return true;
}

void ReadAhead::put_back(Lane& lane, std::size_t pair, Position after, Batch rest) {
  if (pages_ >= max_pages_) return;
  ++pages_;
  lane.pages.insert(lane.pages.begin(),
                    std::make_shared<Page>(
                        Page{.pair = pair, .after = after, .state = State::ready, .batch = std::move(rest)}));
}

ReadAhead::Taken ReadAhead::take(Lane& lane, std::size_t pair, Position after) {
  if (lane.pages.empty() || lane.pages.front()->after != after) {
    drop(lane);
    return {};
  }
  Page& page = *lane.pages.front();
  if (page.state == State::reading) return {.comes = true};
  Taken taken;
  if (page.state == State::ready) taken.page = std::move(page.batch);
  let_go(page);
  lane.pages.erase(lane.pages.begin());
  (void)want(lane, pair);
  return taken;
}

void ReadAhead::let_go(Page& page) noexcept {
  // One that is being read takes its room until that is done.
  if (page.state != State::reading) --pages_;
  if (page.state == State::wanted)
    wanted_.erase(
        std::find_if(wanted_.begin(), wanted_.end(), [&](const PagePtr& one) { return one.get() == &page; }));
  page.state = State::dropped;
  page.batch = {};
}

void ReadAhead::drop(Lane& lane) noexcept {
  for (const PagePtr& page : lane.pages) let_go(*page);
  lane.pages.clear();
  lane.next.reset();
}

ReadAhead::PagePtr ReadAhead::begin() {
  if (wanted_.empty()) return nullptr;
  PagePtr page = std::move(wanted_.front());
  wanted_.pop_front();
  page->state = State::reading;
  return page;
}

void ReadAhead::done(const PagePtr& page, Batch batch) {
  if (page->state == State::dropped) {
    --pages_;
    return;
  }
  page->state = State::ready;
  page->batch = std::move(batch);
}

void ReadAhead::failed(Lane& lane, const PagePtr& page) noexcept {
  --pages_;
  if (page->state == State::dropped) return;
  page->state = State::dropped;
  // Those behind it are of no use without it.
  const auto at = std::find(lane.pages.begin(), lane.pages.end(), page);
  for (auto behind = at + 1; behind != lane.pages.end(); ++behind) let_go(**behind);
  lane.pages.erase(at, lane.pages.end());
  lane.next.reset();
}

}  // namespace postrider
