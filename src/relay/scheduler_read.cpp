// SPDX-License-Identifier: Apache-2.0
// How events come into the scheduler: the tail for all, pages for those behind it. See also
// scheduler_run.cpp.
#include <algorithm>
#include <utility>

#include "core/what_of.hpp"
#include "relay/scheduler.hpp"

namespace postrider {
namespace {

constexpr std::size_t page_events = 1000;
constexpr std::size_t page_bytes = std::size_t{4} << 20U;
constexpr Duration pause_after_failed_read = std::chrono::milliseconds{500};

}  // namespace

void Scheduler::route(const std::vector<StoredEvent>& events) {
  std::set<TopicEntry*> touched;
  const auto offer = [&](TopicEntry* topic, const StoredEvent& event) {
    if (!topic->topic.matches(event)) return;
    topic->last_match = event.position();
    touched.insert(topic);
  };
  for (const StoredEvent& event : events) {
    if (const auto found = by_type_.find(event.type()); found != by_type_.end()) {
      for (TopicEntry* const topic : found->second) offer(topic, event);
    }
    for (TopicEntry* const topic : any_type_) offer(topic, event);
  }
  for (TopicEntry* const topic : touched) {
    for (Pair* const pair : topic->pairs) {
      if (pair->position < topic->last_match) make_ready(*pair);
    }
  }
}

void Scheduler::end_polls(bool looked) {
  for (Pair* const pair : std::exchange(polled_, {})) {
    if (pair->stage != Stage::polling) continue;  // it has events
    schedule(*pair, looked ? pair->health.empty_poll() : pair->health.failed_poll(), false);
  }
}

void Scheduler::refresh() {
  Position after{};
  bool started = false;
  const SteadyPoint begin = options_.clock->steady_now();
  {
    const MutexLock lock(mutex_);
    after = tail_.head();
    started = tail_started_;
  }
  bool looked = false;
  std::string failure;
  try {
    if (!started) {
      const Position head = stream_.head();
      const MutexLock lock(mutex_);
      tail_.restart(head);
      routed_from_ = head;
      for (const auto& [name, topic] : topics_) topic->last_match = head;
      tail_started_ = true;
    } else {
      const Query all = Query::all();
      for (bool more = true; more;) {
        const SteadyPoint page_begin = options_.clock->steady_now();
        ReadPage page =
            stream_.read({.query = &all, .after = after, .limit = page_events, .max_bytes = page_bytes});
        options_.metrics->observe_relay_read(
            page.events.size(), true,
            std::chrono::duration_cast<Duration>(options_.clock->steady_now() - page_begin));
        more = page.more;
        after = std::max(after, page.seen);
        if (!page.events.empty()) after = std::max(after, page.events.back().position());
        const MutexLock lock(mutex_);
        route(page.events);
        tail_.append(std::move(page.events), after);
        if (stopping_ && more) break;
      }
    }
    looked = true;
  } catch (const std::exception& error) {
    failure = what_of(error);
  }
  bool complain = false;
  {
    const MutexLock lock(mutex_);
    refreshing_ = false;
    if (looked) {
      refreshed_at_ = begin;
      complained_ = false;
      changed_.notify_all();
    } else {
      not_before_ = options_.clock->steady_now() + pause_after_failed_read;
      refresh_wanted_ = true;
      complain = !std::exchange(complained_, true);
    }
    end_polls(looked);
  }
  if (complain)
    options_.log(LogLevel::warning, "postrider: cannot read new events, trying again: " + failure);
}

std::optional<Batch> Scheduler::own_page(Pair& pair, Epoch epoch, Position after) {
  {
    const MutexLock lock(mutex_);
    ReadAhead::Taken taken = ahead_.take(pair.ahead, pair.number, after);
    if (ahead_.wanted()) changed_.notify_one();
    if (taken.page.has_value() || taken.comes) return std::move(taken.page);
  }
  return read_own(pair, epoch, after);
}

void Scheduler::read_ahead(Pair& pair, Epoch epoch, const ReadAhead::PagePtr& page) {
  std::optional<Batch> batch;
  try {
    batch = read_own(pair, epoch, page->after);
  } catch (const std::exception&) {  // it will be tried again by the pair's own run, which says so
  }
  const MutexLock lock(mutex_);
  const bool awaited = pair.stage == Stage::reading && ReadAhead::first(pair.ahead, page);
  if (batch.has_value()) {
    ahead_.done(page, *std::move(batch));
  } else {
    ahead_.failed(pair.ahead, page);
  }
  if (!awaited) return;
  pair.stage = Stage::resting;
  make_ready(pair);
}

Batch Scheduler::read_own(Pair& pair, Epoch epoch, Position after) {
  const TopicEntry& topic = *pair.topic;
  const auto expect_more = [&](Position seen) {
    const MutexLock lock(mutex_);
    if (able(pair) && pair.epoch == epoch && ahead_.expect(pair.ahead, pair.number, seen))
      changed_.notify_one();
  };
  const SteadyPoint begin = options_.clock->steady_now();
  bool told = false;
  ReadPage page = stream_.read({.query = &topic.query,
                                .after = after,
                                .limit = std::max(page_events, pair.options.batch_size),
                                .max_bytes = options_.batch_bytes,
                                .located = [&](Position seen) {
                                  told = true;
                                  expect_more(seen);
                                }});
  options_.metrics->observe_relay_read(
      page.events.size(), false, std::chrono::duration_cast<Duration>(options_.clock->steady_now() - begin));
  Batch batch{.seen = std::max(after, page.seen), .more = page.more};
  if (!page.events.empty()) batch.seen = std::max(batch.seen, page.events.back().position());
  batch.events = std::move(page.events);
  std::erase_if(batch.events, [&](const StoredEvent& event) { return !topic.topic.matches(event); });
  if (batch.more && !told) expect_more(batch.seen);
  return batch;
}

bool Scheduler::may_read_ahead() {
  if (!ahead_.wanted() || (waiting_ == 0 && threads_.size() >= options_.workers)) return false;
  if (waiting_ == 0) spawn();
  return true;
}

}  // namespace postrider
