// SPDX-License-Identifier: Apache-2.0
#include "relay/progress_writer.hpp"

#include <algorithm>
#include <utility>

#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"

namespace postrider {

ProgressWriter::ProgressWriter(ProgressStore& store, Options options, OnWritten on_written)
    : store_(store), options_(std::move(options)), on_written_(std::move(on_written)) {}

void ProgressWriter::start() {
  {
    const MutexLock lock(mutex_);
    stopping_ = false;
  }
  thread_ = std::thread([this] { run(); });
}

void ProgressWriter::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    give_up_at_ = options_.clock->steady_now() + options_.stop_timeout;
  }
  changed_.notify_all();
  thread_.join();
}

void ProgressWriter::submit(std::size_t pair, ProgressStep step) {
  const MutexLock lock(mutex_);
  waiting_.failures.erase(pair);
  const auto [found, fresh] = waiting_.last_item.emplace(pair, waiting_.items.size());
  if (!fresh) {
    Item& last = waiting_.items[found->second];
    if (last.step.epoch != step.epoch) {
      last = {.pair = pair,
              .step = std::move(step)};  // what was to be written under the old one is refused anyway
      return;
    }
    if (!last.step.dead.has_value() && !step.dead.has_value() && last.step.to == step.from) {
      last.step.to = step.to;
      last.step.published = last.step.published || step.published;
      ++last.steps;
      return;
    }
    found->second = waiting_.items.size();
  }
  waiting_.items.push_back({.pair = pair, .step = std::move(step)});
  changed_.notify_all();
}

void ProgressWriter::submit(std::size_t pair, PairFailure failure) {
  const MutexLock lock(mutex_);
  waiting_.failures.insert_or_assign(pair, std::move(failure));
  changed_.notify_all();
}

void ProgressWriter::flush() {
  Work work;
  {
    const MutexLock lock(mutex_);
    std::swap(work, waiting_);
  }
  if (!work.empty()) write(work);
}

void ProgressWriter::write(const Work& work) {
  std::vector<ProgressStep> steps;
  steps.reserve(work.items.size());
  for (const Item& item : work.items) steps.push_back(item.step);
  failpoint("relay.progress.before_write");
  std::vector<bool> done;
  if (!steps.empty()) done = store_.advance(steps);
  failpoint("relay.progress.after_write");
  std::vector<Written> written;
  written.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Item& item = work.items[i];
    written.push_back({item.pair, item.step.epoch, item.step.to, item.steps, false, done[i]});
  }
  const auto refused = static_cast<std::size_t>(std::count(done.begin(), done.end(), false));
  if (refused > 0) options_.metrics->increment_relay_refused_writes(refused);
  if (!written.empty()) on_written_(written);
  if (work.failures.empty()) return;
  std::vector<PairFailure> failures;
  for (const auto& [pair, failure] : work.failures) failures.push_back(failure);
  (void)store_.fail(failures);  // of another epoch: then they are the next leader's to find
  written.clear();
  for (const auto& [pair, failure] : work.failures)
    written.push_back({pair, failure.epoch, {}, 0, true, true});
  on_written_(written);
}

void ProgressWriter::run() {
  for (;;) {
    Work work;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !stopping_) changed_.wait(mutex_);
      if (waiting_.empty()) return;
      std::swap(work, waiting_);
    }
    for (int failures = 0;; ++failures) {
      try {
        write(work);
        break;
      } catch (const std::exception& error) {
        // Written again in whole: what was written all the same is refused then, and its pair looked up.
        if (failures == 0) {
          options_.log(LogLevel::error, "postrider: cannot write the progress of " +
                                            counted(work.items.size() + work.failures.size(), "pair") +
                                            ", trying again: " + what_of(error));
        }
      }
      if (!pause_before_retry(failures)) {
        options_.log(LogLevel::error, "postrider: gave up writing the progress of " +
                                          counted(work.items.size(), "pair") +
                                          " while stopping; the events will be published again");
        return;
      }
    }
  }
}

bool ProgressWriter::pause_before_retry(int failures) {
  constexpr Duration first = std::chrono::milliseconds{20};
  constexpr Duration longest = std::chrono::seconds{1};
  const Duration pause = std::min(longest, first * (std::int64_t{1} << std::min(failures, 10)));
  const MutexLock lock(mutex_);
  const SteadyPoint until = options_.clock->steady_now() + pause;
  for (;;) {
    const SteadyPoint now = options_.clock->steady_now();
    if (stopping_ && now >= give_up_at_) return false;
    if (now >= until) return true;
    options_.clock->wait_until(changed_, mutex_, stopping_ ? std::min(until, give_up_at_) : until);
  }
}

}  // namespace postrider
