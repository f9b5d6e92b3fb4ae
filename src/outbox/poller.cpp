// SPDX-License-Identifier: Apache-2.0
#include "outbox/poller.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/event_size.hpp"
#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "core/without_prefix.hpp"

namespace postrider {

namespace {

constexpr Duration shortest_pause = std::chrono::milliseconds{50};
constexpr std::size_t most_keys = 1024;
constexpr std::size_t most_doubtful = 1000;  // the others wait for the end of their leases
/// When a database is likely to be back that was away in the middle of a commit; then with each look.
constexpr std::array<Duration, 3> looks_after_doubt{std::chrono::milliseconds{100}, std::chrono::seconds{1},
                                                    std::chrono::seconds{3}};
constexpr Duration between_doubtful_looks = std::chrono::milliseconds{50};

}  // namespace

OutboxPoller::OutboxPoller(OutboxStore& store, OutboxDispatcher& dispatcher, PollerOptions options)
    : store_(store), dispatcher_(dispatcher), options_(std::move(options)) {}

OutboxPoller::~OutboxPoller() {
  stop();
}

void OutboxPoller::start() {
  if (thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = false;
  }
  thread_ = std::thread([this] { run(); });
}

void OutboxPoller::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  sign_of_life_.elsewhere();
}

void OutboxPoller::poke() {
  {
    const MutexLock lock(mutex_);
    poked_ = true;
  }
  wake_.notify_all();
}

void OutboxPoller::wake_at(SteadyPoint when) {
  {
    const MutexLock lock(mutex_);
    wake_times_.add(when);
  }
  wake_.notify_all();
}

void OutboxPoller::continue_keys(std::vector<std::string> keys) {
  if (keys.empty()) return;
  {
    const MutexLock lock(mutex_);
    poked_ = true;
    for (std::string& key : keys) {
      if (keys_.size() >= most_keys) break;
      keys_.push_back(std::move(key));
    }
  }
  wake_.notify_all();
}

void OutboxPoller::look_for(std::span<const OutboxItem> events) {
  const SteadyPoint now = options_.clock->steady_now();
  {
    const MutexLock lock(mutex_);
    for (const OutboxItem& event : events) {
      if (doubtful_.size() >= most_doubtful) break;
      doubtful_.push_back({{event.id(), event.token}, event.lease_end});
    }
    for (const Duration wait : looks_after_doubt) wake_times_.add(now + wait);
  }
  wake_.notify_all();
}

void OutboxPoller::free_doubtful() {
  std::vector<Doubtful> some;
  {
    const SteadyPoint now = options_.clock->steady_now();
    const MutexLock lock(mutex_);
    if (doubtful_.empty() || options_.search == nullptr || now < next_doubtful_look_) return;
    next_doubtful_look_ = now + between_doubtful_looks;
    std::erase_if(doubtful_, [&](const Doubtful& one) { return one.until <= now; });
    some.swap(doubtful_);
  }
  try {
    std::vector<EventId> ids;
    ids.reserve(some.size());
    for (const Doubtful& one : some) ids.push_back(one.lease.id);
    const std::vector<EventId> there = options_.search->known(ids);
    const std::unordered_set<EventId> found(there.begin(), there.end());
    std::erase_if(some, [&](const Doubtful& one) {
      if (!found.contains(one.lease.id)) return false;
      if (dispatcher_.holds(one.lease.id)) return true;  // published once more, and on its way
      dispatcher_.submit({Completion{one.lease, Completion::Kind::release, {}, {}, {}}, {}});
      return true;
    });
  } catch (const std::exception&) {
    // It is away, and asked again.
  }
  const MutexLock lock(mutex_);
  doubtful_.insert(doubtful_.end(), some.begin(), some.end());
}

void OutboxPoller::ordered_ended(std::size_t delivered, std::size_t failed) {
  const MutexLock lock(mutex_);
  run_length_.ended(delivered, failed);
}

void OutboxPoller::run() {
  Duration pause = Duration::zero();
  bool failing = false;
  const Duration shortest = std::min(shortest_pause, options_.interval);
  while (wait_for_reason(pause)) {
    try {
      const Claimed claimed = poll(&sign_of_life_);
      if (std::exchange(failing, false)) options_.log(LogLevel::info, "postrider: the outbox poller goes on");
      if (claimed.more) {
        // Without room the dispatcher pokes as soon as there is some.
        pause = claimed.starved ? shortest : Duration::zero();
      } else if (claimed.rows > 0) {
        pause = shortest;
      } else {
        pause = std::clamp(pause * 2, shortest, options_.interval);
      }
    } catch (const std::exception& error) {
      options_.metrics->increment_poll_failures();
      if (!std::exchange(failing, true)) {
        options_.log(LogLevel::error, "postrider: the outbox poller failed, trying again: " +
                                          std::string(without_prefix(what_of(error))));
      }
      pause = std::clamp(pause * 2, shortest, options_.interval);
    }
  }
}

bool OutboxPoller::wait_for_reason(Duration pause) {
  const MutexLock lock(mutex_);
  const SteadyPoint until = options_.clock->steady_now() + pause;
  while (!stopping_ && !poked_) {
    const SteadyPoint now = options_.clock->steady_now();
    const SteadyPoint reason = std::min(until, wake_times_.next());
    if (now >= reason) break;
    sign_of_life_.expect_by(reason);
    options_.clock->wait_until(wake_, mutex_, reason);
  }
  poked_ = false;
  const SteadyPoint now = options_.clock->steady_now();
  sign_of_life_.busy(now);
  wake_times_.forget_until(now);
  return !stopping_;
}

void OutboxPoller::ask_again(std::span<const std::string> keys) {
  const MutexLock lock(mutex_);
  for (const std::string& key : keys) {
    if (keys_.size() >= most_keys) break;
    keys_.push_back(key);
  }
}

std::size_t OutboxPoller::poll_once() {
  return poll(nullptr).rows;
}

OutboxPoller::Claimed OutboxPoller::poll(SignOfLife* sign) {
  const Claimed claimed = claim_once(sign);
  // Not inside the cycle: a listener may poll.
  if (claimed.rows > 0) dispatcher_.run_inline();
  return claimed;
}

OutboxPoller::Claimed OutboxPoller::claim_once(SignOfLife* sign) {
  if (sign != nullptr) sign->elsewhere();  // somebody else's cycle may be waiting for the database
  const MutexLock cycle(cycle_mutex_);
  OutboxDispatcher::ClaimWindow window(dispatcher_, options_.batch_size);
  free_doubtful();
  if (window.limit() == 0) return {};

  std::vector<std::string> keys;
  ClaimRequest request;
  {
    const MutexLock lock(mutex_);
    keys.swap(keys_);
    request.run_limit = run_length_.limit();
  }
  request.owner = options_.owner;
  request.lease = options_.lease;
  request.limit = window.limit();
  request.continue_keys = keys;
  // Measured before the database is asked: the local end must never be later than the one in the row.
  const SteadyPoint asked = options_.clock->steady_now();
  std::vector<ClaimedEvent> claimed;
  try {
    claimed = store_.claim(request);
  } catch (...) {
    // No poke: the database deserves its pause.
    ask_again(keys);
    throw;
  }
  if (claimed.size() >= request.limit) {
    // Those for which there was no room. Their rows may have been deferred while they were in progress.
    std::unordered_set<std::string_view> served;
    for (const ClaimedEvent& event : claimed) served.insert(event.ordering_key);
    std::erase_if(keys, [&](const std::string& key) { return served.contains(key); });
    ask_again(keys);
  }
  if (sign != nullptr) sign->busy(options_.clock->steady_now());
  failpoint("outbox.claim.after");
  options_.metrics->observe_claim(claimed.size(),
                                  std::chrono::duration_cast<Duration>(options_.clock->steady_now() - asked));

  std::vector<OutboxItem> events;
  events.reserve(claimed.size());
  TimePoint oldest = TimePoint::max();
  for (ClaimedEvent& row : claimed) {
    oldest = std::min(oldest, row.created_at);
    if (!row.event) {
      options_.metrics->increment_dispatch_dead();
      options_.log(LogLevel::error, "postrider: event " + row.lease.id.str() +
                                        " cannot be decoded and is dead: " + row.decode_error);
      Completion dead{
          row.lease, Completion::Kind::dead, row.failed, {}, "cannot decode: " + row.decode_error};
      dispatcher_.submit({std::move(dead), {}});
      continue;
    }
    const std::size_t bytes = size_of(*row.event);
    events.push_back({std::move(row.event),
                      row.lease.token,
                      row.failed,
                      Source::cold,
                      std::move(row.ordering_key),
                      asked + options_.lease,
                      {},
                      bytes});
  }
  window.brought(claimed.size(), events);
  options_.metrics->record_oldest_lag(
      claimed.empty() ? Duration::zero() : std::max(Duration::zero(), options_.clock->now() - oldest));
  if (!events.empty()) {
    if (!dispatcher_.enqueue_cold(events)) {
      for (const OutboxItem& event : events) {
        dispatcher_.submit(
            {Completion{{event.id(), event.token}, Completion::Kind::release, {}, {}, {}}, {}});
      }
    }
  }
  return {claimed.size(), claimed.size() >= request.limit, window.starved()};
}

}  // namespace postrider
