// SPDX-License-Identifier: Apache-2.0
#include "postrider/event_log.hpp"

#include <algorithm>

#include "postrider/error.hpp"
#include "queue/waiting.hpp"
#include "storage/log_store.hpp"
#include "storage/queue_store.hpp"

namespace postrider {
namespace {

constexpr std::size_t most_read = 10'000;
class Subscription {
 public:
  Subscription(detail::Signal& signal, detail::Signal::Listener listener)
      : signal_(signal), number_(signal.subscribe(std::move(listener))) {}
  ~Subscription() { signal_.unsubscribe(number_); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

 private:
  detail::Signal& signal_;
  const std::uint64_t number_;
};

}  // namespace

EventLog::EventLog(Storage& storage, Clock* clock) noexcept
    : storage_(storage), clock_(clock != nullptr ? *clock : Clock::system()) {}

LogPage EventLog::read(LogSeq after, std::size_t limit, const LogFilter& filter) {
  if (limit < 1 || limit > most_read) {
    throw Error(ErrorCode::invalid_argument, "cannot read the log", "limit must be between 1 and 10000");
  }
  storage_.queue_store().sequence_log();
  return storage_.log_store().read(after, limit, filter);
}

LogSeq EventLog::head() {
  storage_.queue_store().sequence_log();
  return storage_.log_store().head();
}

std::optional<LogEntry> EventLog::find(QueueId id) {
  return storage_.log_store().find(id);
}

LogSeq EventLog::wait(LogSeq after, Duration timeout) {
  const Subscription finished(*storage_.log_grown(), [this] { wake(); });
  const SteadyPoint end = clock_.steady_now() + std::min(timeout, longest_wait);
  Duration pause = first_pause;
  for (;;) {
    std::uint64_t before = 0;
    {
      const MutexLock lock(mutex_);
      before = wakes_;  // counted before the look: what ends during it must not be slept through
    }
    const LogSeq found = head();
    if (found > after) return found;
    const SteadyPoint next = std::min(end, clock_.steady_now() + pause);
    pause = std::min(pause * 2, longest_pause);
    const MutexLock lock(mutex_);
    while (wakes_ == before && clock_.steady_now() < next) clock_.wait_until(woken_, mutex_, next);
    if (wakes_ == before && clock_.steady_now() >= end) return found;
  }
}

void EventLog::wake() noexcept {
  const MutexLock lock(mutex_);
  ++wakes_;
  woken_.notify_all();
}

}  // namespace postrider
