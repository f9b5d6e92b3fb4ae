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
/// For so long nothing that is published, or written down as progress, is checked against the store once
/// more.
constexpr Duration proof_holds = std::chrono::seconds{1};

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

bool Scheduler::proven(SteadyPoint now) const {
  return tail_started_ && proven_until_ && now < *proven_until_;
}

void Scheduler::begin_tail() {
  const Query all = Query::all();
  const ReadPage newest = stream_.read({.query = &all, .limit = 1, .backwards = true});
  StreamEnd end{.head = newest.head};
  if (!newest.events.empty()) end.last = newest.events.front().id();
  const MutexLock lock(mutex_);
  routed_from_ = end.head;
  for (const auto& [name, topic] : topics_) topic->last_match = end.head;
  tail_.restart(end);
  tail_started_ = true;
  proven_until_ = options_.clock->steady_now() + proof_holds;
}

bool Scheduler::read_on(StreamEnd end) {
  const Query all = Query::all();
  for (bool more = true; more;) {
    const SteadyPoint begin = options_.clock->steady_now();
    // The event that is known to be the last is read once more. A store that was restored from a backup, or
    // whose server was replaced by one without the last commits, has another one there, or none.
    const std::int64_t again = end.last ? 1 : 0;
    ReadPage page = stream_.read({.query = &all,
                                  .after = Position{static_cast<std::int64_t>(end.head) - again},
                                  .limit = page_events + static_cast<std::size_t>(again),
                                  .max_bytes = page_bytes});
    if (end.last) {
      const bool there = !page.events.empty() && page.events.front().position() == end.head &&
                         page.events.front().id() == *end.last;
      if (!there) return false;
      page.events.erase(page.events.begin());
    }
    options_.metrics->observe_relay_read(
        page.events.size(), true, std::chrono::duration_cast<Duration>(options_.clock->steady_now() - begin));
    more = page.more;
    Position seen = std::max(end.head, page.seen);
    if (!page.events.empty()) seen = std::max(seen, page.events.back().position());
    const MutexLock lock(mutex_);
    route(page.events);
    tail_.append(std::move(page.events), seen);
    end = tail_.end();
    proven_until_ = options_.clock->steady_now() + proof_holds;
    if (stopping_ && more) break;
  }
  return true;
}

void Scheduler::forget_all(const StreamEnd& known) {
  {
    const MutexLock lock(mutex_);
    tail_started_ = false;
    for (const auto& pair : pairs_) {
      if (!pair->led) continue;
      pair->doubtful = true;
      rest(*pair);
      ahead_.drop(pair->ahead);
    }
  }
  options_.log(
      LogLevel::error,
      "postrider: the event store was set back: event " + known.last->str() + ", which stood at position " +
          std::to_string(static_cast<std::int64_t>(known.head)) +
          ", is not there any more (a restored backup, or a standby without the last commits?). All pairs "
          "go on from where the database says they stand; what was published since, and is lost in the "
          "store, stays published");
  if (options_.on_doubt) options_.on_doubt();
}

void Scheduler::refresh() {
  StreamEnd known;
  bool started = false;
  const SteadyPoint begin = options_.clock->steady_now();
  {
    const MutexLock lock(mutex_);
    known = tail_.end();
    started = tail_started_;
  }
  bool looked = false;
  bool as_known = true;
  std::string failure;
  try {
    if (!started) {
      begin_tail();
    } else {
      as_known = read_on(known);
    }
    looked = true;
  } catch (const std::exception& error) {
    failure = what_of(error);
  }
  if (!as_known) forget_all(known);
  bool complain = false;
  {
    const MutexLock lock(mutex_);
    refreshing_ = false;
    if (looked) {
      refreshed_at_ = begin;
      complained_ = false;
      if (as_known && std::exchange(checkpoint_wanted_, false)) write_checkpoint();
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

std::optional<Batch> Scheduler::own_page(Pair& pair, const Term& term, Position after) {
  {
    const MutexLock lock(mutex_);
    ReadAhead::Taken taken = ahead_.take(pair.ahead, pair.number, after);
    if (ahead_.wanted()) changed_.notify_one();
    if (taken.page.has_value() || taken.comes) return std::move(taken.page);
  }
  return read_own(pair, term, after);
}

void Scheduler::read_ahead(Pair& pair, const Term& term, const ReadAhead::PagePtr& page) {
  std::optional<Batch> batch;
  try {
    batch = read_own(pair, term, page->after);
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

Batch Scheduler::read_own(Pair& pair, const Term& term, Position after) {
  const TopicEntry& topic = *pair.topic;
  const auto expect_more = [&](Position seen) {
    const MutexLock lock(mutex_);
    if (able(pair) && pair.term == term && ahead_.expect(pair.ahead, pair.number, seen))
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
