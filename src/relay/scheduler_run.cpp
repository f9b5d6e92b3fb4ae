// SPDX-License-Identifier: Apache-2.0
// What the scheduler's threads do: timers and batches. See also scheduler.cpp and scheduler_read.cpp.
#include <algorithm>
#include <system_error>
#include <utility>

#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"
#include "relay/scheduler.hpp"

namespace postrider {
namespace {

/// For so long one thread stays behind to watch, while all others are held up, before it makes another one.
constexpr Duration grace = std::chrono::milliseconds{20};
constexpr Duration far_away = std::chrono::hours{1};

/// The scheduler in whose publisher's call this thread is.
thread_local const void* inside_of = nullptr;

}  // namespace

bool Scheduler::inside() const noexcept {
  return inside_of == this;
}

void Scheduler::catch_up(Pair& pair) const {
  if (pair.position >= routed_from_ && pair.position >= pair.topic->last_match) {
    pair.position = std::max(pair.position, tail_.head());
  }
}

void Scheduler::fire_timers(SteadyPoint now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    Pair& pair = *timers_.begin()->second;
    timers_.erase(timers_.begin());
    pair.stage = Stage::resting;
    catch_up(pair);
    if (pair.failing || pair.position < pair.topic->last_match || !tail_.has(pair.position)) {
      make_ready(pair);
    } else if (now - refreshed_at_ > pair.delay / 2) {
      pair.stage = Stage::polling;
      polled_.push_back(&pair);
      refresh_wanted_ = true;
    } else {
      schedule(pair, pair.health.empty_poll(), false);  // somebody else has just looked
    }
  }
}

PublishResult Scheduler::call(Pair& pair, std::span<const StoredEvent> events, Epoch epoch,
                              bool& culprit_known) {
  PublishContext context{.topic = pair.name.topic, .epoch = epoch, .node = options_.node};
  {
    const MutexLock lock(mutex_);
    context.failures = pair.health.failures();
  }
  const SteadyPoint begin = options_.clock->steady_now();
  const void* const before = std::exchange(inside_of, this);
  PublishResult result = PublishResult::all();
  culprit_known = true;
  try {
    result = pair.publisher->publisher->publish_batch(events, context);
  } catch (const Error& error) {
    culprit_known = error.retryable();
    result = error.retryable() ? PublishResult::unavailable(0, what_of(error))
                               : PublishResult::refused(0, what_of(error));
  } catch (const std::exception& error) {
    culprit_known = false;
    result = PublishResult::refused(0, what_of(error));
  } catch (...) {
    culprit_known = false;
    result = PublishResult::refused(0, "an exception of an unknown kind");
  }
  inside_of = before;
  options_.metrics->observe_relay_publish(
      events.size(), std::chrono::duration_cast<Duration>(options_.clock->steady_now() - begin));
  return result;
}

bool Scheduler::book(Pair& pair, const Term& term, Position to, bool sent, std::optional<std::string> dead) {
  const MutexLock lock(mutex_);
  if (!pair.led || pair.term != term || pair.doubtful) return false;
  if (to > pair.stored) {
    ++pair.unwritten;
    writer_.submit(pair.number, ProgressStep{.name = pair.name,
                                             .epoch = term.epoch,
                                             .from = pair.stored,
                                             .to = to,
                                             .published = sent,
                                             .dead = std::move(dead)});
    pair.stored = to;
  }
  pair.position = std::max(pair.position, to);
  return true;
}

bool Scheduler::look_at_health(PublisherEntry& entry, const std::string& name) {
  const bool healthy = entry.publisher->healthy();
  {
    const MutexLock lock(mutex_);
    if (std::exchange(entry.healthy, healthy) == healthy) return healthy;
  }
  if (healthy) {
    options_.log(LogLevel::info, "postrider: publisher '" + name + "' is healthy again");
  } else {
    options_.log(LogLevel::warning,
                 "postrider: publisher '" + name + "' is not healthy: nothing is given to it until it is");
  }
  return healthy;
}

Scheduler::RunEnd Scheduler::publish(Pair& pair) {
  Publisher& publisher = *pair.publisher->publisher;
  if (!options_.may_publish()) return {.looked = false, .failed = options_.retry_gate};
  if (!look_at_health(*pair.publisher, pair.name.publisher))
    return {.looked = false, .failed = pair.options.polling_interval};

  Term term;
  Position position{};
  Batch batch;
  bool own = false;
  {
    const MutexLock lock(mutex_);
    if (!able(pair)) return {.looked = false};
    pair.again = false;
    catch_up(pair);
    term = pair.term;
    position = pair.position;
    if (pair.unwritten >= options_.unwritten_batches) return {.more = true};
    own = !tail_.has(position);
    const std::size_t most = pair.health.batch_size(publisher.mode());
    if (!own)
      batch = tail_.collect(pair.topic->topic, position, std::max(most, pair.options.batch_size),
                            options_.batch_bytes);
  }
  if (own) {
    std::optional<Batch> page = own_page(pair, term, position);
    if (!page.has_value()) return {.more = true};
    batch = *std::move(page);
  }
  RunEnd end{.more = batch.more};
  const std::span<const StoredEvent> events(batch.events);
  if (events.empty()) {
    if (own) (void)book(pair, term, batch.seen, false, {});
    const MutexLock lock(mutex_);
    if (pair.led && pair.term == term) pair.position = std::max(pair.position, batch.seen);
    return end;
  }
  for (std::size_t at = 0; at < events.size();) {
    std::size_t size = 0;
    {
      const MutexLock lock(mutex_);
      if (!able(pair) || pair.term != term || (stopping_ && at > 0)) return end;
      if (pair.unwritten >= options_.unwritten_batches) {
        if (own) {
          ahead_.put_back(pair.ahead, pair.number, pair.position,
                          {.events = {events.begin() + static_cast<std::ptrdiff_t>(at), events.end()},
                           .seen = batch.seen,
                           .more = batch.more});
        }
        end.more = true;
        return end;
      }
      size = std::min(events.size() - at, pair.health.batch_size(publisher.mode()));
    }
    if (at > 0 && !options_.may_publish())
      return {.sent = end.sent, .looked = false, .failed = options_.retry_gate};
    failpoint("relay.publish.before");
    bool culprit_known = true;
    const PublishResult result = call(pair, events.subspan(at, size), term.epoch, culprit_known);
    failpoint("relay.publish.after");
    const std::size_t sent = result.count(size);
    end.sent += sent;
    published_ += sent;
    if (sent > 0) options_.metrics->increment_relay_published(sent);
    at += sent;
    if (sent > 0 &&
        !book(pair, term, at == events.size() ? batch.seen : events[at - 1].position(), true, {})) {
      return end;
    }
    if (sent == size) {
      const MutexLock lock(mutex_);
      pair.health.published();
      continue;
    }
    options_.metrics->increment_relay_failures();
    const double luck = random();
    PairHealth::Failure failure;
    {
      const MutexLock lock(mutex_);
      if (!pair.led || pair.term != term) return end;
      failure = result.kind() == PublishResult::Kind::unavailable
                    ? pair.health.unavailable(sent, luck)
                    : pair.health.refused(sent, size, culprit_known, luck);
      if (failure.stop) {
        pair.state = PairState::failed;
        pair.stop_unwritten = true;
      }
    }
    const StoredEvent& culprit = events[at];
    const std::string place = result.kind() == PublishResult::Kind::unavailable
                                  ? std::string(receiver_is_away)
                                  : "event " + culprit.id().str() + " at position " +
                                        std::to_string(static_cast<std::int64_t>(culprit.position()));
    const std::string reason = place + ": " + result.reason();
    if (failure.dead_letter) {
      options_.metrics->increment_relay_dead_letters();
      options_.log(LogLevel::error, "postrider: topic '" + pair.name.topic + "', publisher '" +
                                        pair.name.publisher + "' gave up " + reason);
      ++at;
      if (!book(pair, term, culprit.position(), false, reason)) return end;
      continue;
    }
    if (!failure.counted && failure.delay == Duration::zero()) continue;  // now one by one
    writer_.submit(pair.number, PairFailure{.name = pair.name,
                                            .epoch = term.epoch,
                                            .error = reason,
                                            .counted = failure.counted,
                                            .stop = failure.stop});
    if (failure.stop) {
      options_.log(LogLevel::error, "postrider: topic '" + pair.name.topic + "', publisher '" +
                                        pair.name.publisher +
                                        "' has FAILED and stands still until resumed: " + reason);
    }
    end.failed = failure.delay;
    return end;
  }
  const MutexLock lock(mutex_);
  if (pair.led && pair.term == term) pair.position = std::max(pair.position, batch.seen);
  return end;
}

void Scheduler::end_run(Pair& pair, const RunEnd& end) {
  const MutexLock lock(mutex_);
  --pair.publisher->running;
  pair.stage = Stage::resting;
  if (!able(pair) || stopping_) {
    ahead_.drop(pair.ahead);  // and rests
  } else if (end.failed.has_value()) {
    ahead_.drop(pair.ahead);
    schedule(pair, *end.failed, true);
  } else if (pair.unwritten >= options_.unwritten_batches) {
    pair.stage = Stage::writing;
  } else if (end.more || pair.again || pair.position < pair.topic->last_match || !tail_.has(pair.position)) {
    pair.again = false;
    const ReadAhead::Lane& ahead = pair.ahead;
    if (!ahead.pages.empty() && ahead.pages.front()->after == pair.position &&
        ahead.pages.front()->state == ReadAhead::Page::State::reading) {
      pair.stage = Stage::reading;
    } else {
      make_ready(pair);
    }
  } else {
    schedule(pair, end.sent > 0 ? pair.options.polling_interval : pair.health.empty_poll(), false);
  }
  list(*pair.publisher);
}

void Scheduler::run(Pair& pair) {
  RunEnd end;
  const auto cannot_go_on = [&](const std::string& why) {
    options_.log(LogLevel::warning, "postrider: topic '" + pair.name.topic + "', publisher '" +
                                        pair.name.publisher + "' cannot go on, trying again: " + why);
    end = {.looked = false, .failed = pair.options.polling_interval};
  };
  try {
    end = publish(pair);
  } catch (const std::exception& error) {
    cannot_go_on(what_of(error));
  } catch (...) {
    cannot_go_on("an exception of an unknown kind");
  }
  end_run(pair, end);
}

bool Scheduler::wants_refresh(SteadyPoint now) const {
  const bool needed = !tail_started_ || (!runnable_.empty() && !proven(now));
  return led_ > 0 && !refreshing_ && (refresh_wanted_ || needed) && now >= not_before_;
}

Scheduler::Pair* Scheduler::take_ready() {
  while (proven(options_.clock->steady_now()) && !runnable_.empty()) {
    PublisherEntry& publisher = *runnable_.front();
    runnable_.pop_front();
    publisher.listed = false;
    while (!publisher.ready.empty()) {
      Pair* const pair = publisher.ready.front();
      publisher.ready.pop_front();
      if (pair->stage != Stage::ready) continue;
      pair->stage = Stage::running;
      ++publisher.running;
      list(publisher);  // behind the others
      return pair;
    }
  }
  return nullptr;
}

bool Scheduler::step() {
  Pair* pair = nullptr;
  {
    const MutexLock lock(mutex_);
    const SteadyPoint now = options_.clock->steady_now();
    fire_timers(now);
    if (wants_refresh(now)) {
      refresh_wanted_ = false;
      refreshing_ = true;
    } else {
      pair = take_ready();
      if (pair == nullptr) return false;
    }
  }
  if (pair == nullptr) {
    refresh();
  } else {
    run(*pair);
  }
  return true;
}

void Scheduler::wake() noexcept {
  const MutexLock lock(mutex_);
  refresh_wanted_ = true;
  if (led_ > 0) changed_.notify_one();
}

void Scheduler::end_pauses() noexcept {
  const MutexLock lock(mutex_);
  for (const auto& pair : pairs_) {
    if (pair->stage != Stage::timed || !pair->failing) continue;
    pair->failing = false;
    make_ready(*pair);
  }
}

void Scheduler::start() {
  const MutexLock lock(mutex_);
  started_ = true;
  spawn();
  spawn();
}

void Scheduler::stop() {
  std::list<std::thread> threads;
  std::vector<std::thread> ended;
  {
    const MutexLock lock(mutex_);
    if (!started_) return;
    stopping_ = true;
    threads.swap(threads_);
    ended.swap(ended_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  for (std::thread& thread : ended) thread.join();
  const MutexLock lock(mutex_);
  sign_of_life_.elsewhere();
  stopping_ = false;
  started_ = false;
}

void Scheduler::spawn() {
  for (std::thread& thread : ended_) thread.join();  // each is behind its last line with the mutex
  ended_.clear();
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    if (threads_.empty()) throw;
    options_.log(LogLevel::warning, "postrider: no further thread to publish with: " + what_of(error));
  }
}

bool Scheduler::may_leave(SteadyPoint now) {
  bool alone = waiting_ == 0 && threads_.size() < options_.max_workers;
  if (alone && threads_.size() >= options_.workers) {
    if (!stuck_since_.has_value()) stuck_since_ = now;
    if (now - *stuck_since_ < grace) return false;
  }
  stuck_since_.reset();
  if (alone) spawn();
  return true;
}

void Scheduler::leave_loop() {
  if (waiting_ == 0) return sign_of_life_.elsewhere();
  sign_of_life_.expect_by(timers_.empty() ? SteadyPoint::max() : timers_.begin()->first);
}

void Scheduler::work() {
  mutex_.lock();
  while (!stopping_) {
    const SteadyPoint now = options_.clock->steady_now();
    sign_of_life_.busy(now);
    failpoint("relay.schedule");
    fire_timers(now);
    if (wants_refresh(now)) {
      refresh_wanted_ = false;
      refreshing_ = true;
      leave_loop();
      mutex_.unlock();
      refresh();
      mutex_.lock();
      continue;
    }
    const bool work_waits = proven(now) && !runnable_.empty();
    if (work_waits && may_leave(now)) {
      Pair* const pair = take_ready();
      if (pair == nullptr) continue;
      leave_loop();
      mutex_.unlock();
      run(*pair);
      mutex_.lock();
      if (threads_.size() > options_.workers && waiting_ > 0 && runnable_.empty() && !stopping_) {
        const auto self = std::find_if(threads_.begin(), threads_.end(), [](const std::thread& thread) {
          return thread.get_id() == std::this_thread::get_id();
        });
        ended_.push_back(std::move(*self));
        threads_.erase(self);
        break;
      }
      continue;
    }
    if (may_read_ahead()) {
      const ReadAhead::PagePtr page = ahead_.begin();
      Pair& pair = *pairs_[page->pair];
      const Term term = pair.term;
      leave_loop();
      mutex_.unlock();
      read_ahead(pair, term, page);
      mutex_.lock();
      continue;
    }
    SteadyPoint until = now + far_away;
    if (!timers_.empty()) until = std::min(until, timers_.begin()->first);
    if ((refresh_wanted_ || !runnable_.empty()) && !refreshing_ && led_ > 0 && !work_waits)
      until = std::min(until, std::max(now, not_before_));
    if (work_waits && stuck_since_.has_value()) until = std::min(until, *stuck_since_ + grace);
    ++waiting_;
    sign_of_life_.expect_by(until);
    options_.clock->wait_until(changed_, mutex_, until);
    --waiting_;
  }
  mutex_.unlock();
}

}  // namespace postrider
