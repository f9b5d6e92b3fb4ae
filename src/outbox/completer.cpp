// SPDX-License-Identifier: Apache-2.0
#include "outbox/completer.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/failpoint.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider {

namespace {

constexpr Duration first_retry_pause = std::chrono::milliseconds{20};
constexpr Duration longest_retry_pause = std::chrono::seconds{2};

}  // namespace

Completer::Completer(OutboxStore& store, CompleterOptions options, OnFlushed on_flushed)
    : store_(store), options_(std::move(options)), on_flushed_(std::move(on_flushed)) {}

Completer::~Completer() {
  stop();
}

void Completer::start() {
  {
    const MutexLock lock(mutex_);
    give_up_at_.reset();
  }
  queue_ = std::make_unique<BoundedQueue<FinishedEvent>>(options_.queue_capacity, *options_.clock);
  thread_ = std::thread([this] { run(); });
}

void Completer::give_up_at(SteadyPoint when) {
  {
    const MutexLock lock(mutex_);
    if (!give_up_at_) give_up_at_ = when;
  }
  stop_asked_.notify_all();
}

void Completer::stop() {
  if (!thread_.joinable()) return;
  give_up_at(options_.clock->steady_now() + options_.stop_timeout);
  queue_->close();
  thread_.join();
}

void Completer::submit(FinishedEvent result) {
  const EventId id = result.completion.lease.id;
  if (!queue_->push(std::move(result))) {
    options_.log(LogLevel::warning, "postrider: the result of event " + id.str() +
                                        " came after the outbox was stopped; it will be delivered again");
  }
}

bool Completer::try_submit(FinishedEvent result) {
  return queue_->try_push(std::move(result));
}

void Completer::run() {
  std::vector<FinishedEvent> batch;
  while (queue_->pop_batch(batch, options_.batch_size, options_.linger)) {
    for (;;) {
      flush(batch);
      on_flushed_(batch);
      batch.clear();
      if (again_.empty()) break;
      batch.swap(again_);
    }
  }
}

void Completer::flush(std::vector<FinishedEvent>& batch) {
  for (int failures = 0;; ++failures) {
    try {
      if (try_write(batch)) return;
      // Not a matter of waiting: something in the batch is refused. Find it, and let its neighbours through.
      write_one_by_one(batch);
      return;
    } catch (const std::exception& error) {
      options_.metrics->increment_flush_failures();
      options_.log(LogLevel::error, "postrider: cannot write " + counted(batch.size(), "result") +
                                        ", trying again: " + error.what());
    }
    if (!pause_before_retry(failures)) {
      options_.log(LogLevel::error, "postrider: gave up writing " + counted(batch.size(), "result") +
                                        " while stopping; delivery will be repeated");
      return;
    }
  }
}

/// False when the database refused the batch for good. Throws when it is worth trying again.
bool Completer::try_write(std::span<const FinishedEvent> batch) {
  try {
    write_now(batch);
    return true;
  } catch (const Error& error) {
    if (error.retryable() || error.connection_lost() || error.in_doubt() || error.code() == ErrorCode::schema)
      throw;
    options_.metrics->increment_flush_failures();
    options_.log(LogLevel::error, std::string("postrider: a batch of results was refused: ") + error.what());
    return false;
  }
}

void Completer::write_one_by_one(std::span<const FinishedEvent> batch) {
  for (const FinishedEvent& one : batch) {
    if (!try_write({&one, 1})) {
      options_.log(LogLevel::error, "postrider: the result of event " + one.completion.lease.id.str() +
                                        " cannot be written; it will be delivered again when its lease ends");
    }
  }
}

void Completer::write_now(std::span<const FinishedEvent> batch) {
  scratch_.clear();
  for (const FinishedEvent& one : batch) scratch_.push_back(one.completion);
  const SteadyPoint begin = options_.clock->steady_now();
  failpoint("outbox.complete.before");
  const std::size_t changed = store_.complete(scratch_);
  failpoint("outbox.complete.after");
  options_.metrics->observe_flush(batch.size(),
                                  std::chrono::duration_cast<Duration>(options_.clock->steady_now() - begin));
  if (changed < batch.size()) options_.metrics->increment_stale_completions(batch.size() - changed);
}

bool Completer::pause_before_retry(int failures) {
  const Duration pause =
      std::min(longest_retry_pause, first_retry_pause * (std::int64_t{1} << std::min(failures, 10)));
  const MutexLock lock(mutex_);
  const SteadyPoint until = options_.clock->steady_now() + pause;
  while (options_.clock->steady_now() < until) {
    if (give_up_at_ && options_.clock->steady_now() >= *give_up_at_) return false;
    options_.clock->wait_until(stop_asked_, mutex_, give_up_at_ ? std::min(until, *give_up_at_) : until);
  }
  return !give_up_at_ || options_.clock->steady_now() < *give_up_at_;
}

}  // namespace postrider
