// SPDX-License-Identifier: Apache-2.0
#include "stream/append_batcher.hpp"

#include <algorithm>
#include <utility>

#include "postrider/error.hpp"

namespace postrider {
namespace {

std::size_t bytes_of(const AppendRequest& request) {
  std::size_t bytes = 0;
  for (const AppendEvent& event : request.events) {
    bytes += event.event().payload().size() + event.event().headers_json().size();
  }
  return bytes;
}

Error closed_error() {
  return {ErrorCode::closed, "cannot append", "the event store is closed; nothing was written"};
}

Error cancelled_error() {
  return {ErrorCode::closed, "cannot append", "it was cancelled before it began; nothing was written"};
}

}  // namespace

/// A caller that waits. Shared, because whoever wakes him may still be busy with it when he is gone.
struct AppendBatcher::Waiter {
  explicit Waiter(const AppendRequest& its_request) : request(its_request), bytes(bytes_of(its_request)) {}

  enum class Call { none, lead, done, cancel };
  void call(Call what) noexcept POSTRIDER_EXCLUDES(mutex) {
    {
      const MutexLock lock(mutex);
      // A verdict is final; a request to cancel waits behind a call to lead, which comes once only.
      if (called == Call::done || (what == Call::cancel && called == Call::lead)) return;
      called = what;
    }
    changed.notify_one();
  }
  Call wait() POSTRIDER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    while (called == Call::none) changed.wait(mutex);
    return called;
  }
  /// Waits for the end, whatever was called before.
  Call wait_on() POSTRIDER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    while (called != Call::lead && called != Call::done) changed.wait(mutex);
    return called;
  }
  [[nodiscard]] bool leads() POSTRIDER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    return called == Call::lead;
  }
  void finish(AppendVerdict its_verdict) noexcept {
    verdict.emplace(std::move(its_verdict));
    call(Call::done);
  }

  const AppendRequest& request;
  const std::size_t bytes;
  std::optional<AppendVerdict> verdict;  // written before `done` is called, read after it
  Mutex mutex;
  CondVar changed;
  Call called POSTRIDER_GUARDED_BY(mutex) = Call::none;
};

AppendBatcher::AppendBatcher(AppendBatcherOptions options, Flush flush)
    : options_(options), flush_(std::move(flush)) {}

AppendBatcher::~AppendBatcher() {
  close();
}

AppendVerdict AppendBatcher::append(const AppendRequest& request, const std::stop_token& cancel) {
  if (cancel.stop_requested()) throw cancelled_error();
  const auto waiter = std::make_shared<Waiter>(request);
  const std::stop_callback on_cancel(cancel, [&] { waiter->call(Waiter::Call::cancel); });
  bool leads = false;
  {
    const MutexLock lock(mutex_);
    if (closed_) throw closed_error();
    queue_.push_back(waiter);
    leads = !std::exchange(led_, true);
  }
  if (!leads) {
    Waiter::Call call = waiter->wait();
    if (call == Waiter::Call::cancel) {
      if (withdraw(waiter)) throw cancelled_error();
      call = waiter->wait_on();
    }
    leads = call == Waiter::Call::lead;
  }
  if (leads) lead();
  AppendVerdict verdict = *std::move(waiter->verdict);
  return verdict;
}

bool AppendBatcher::withdraw(const std::shared_ptr<Waiter>& waiter) {
  const MutexLock lock(mutex_);
  // The first in line may have been called to lead just now, which nobody else would do.
  const auto place = std::find(queue_.begin(), queue_.end(), waiter);
  if (place == queue_.end()) return false;
  if (waiter->leads()) return false;
  queue_.erase(place);
  return true;
}

void AppendBatcher::lead() {
  Waiters batch;
  {
    const MutexLock lock(mutex_);
    batch = take();
  }
  run(batch);
  hand_over();
}

AppendBatcher::Waiters AppendBatcher::take() {
  Waiters batch;
  std::size_t events = 0;
  std::size_t bytes = 0;
  while (!queue_.empty()) {
    const Waiter& next = *queue_.front();
    events += next.request.events.size();
    bytes += next.bytes;
    if (!batch.empty() && (events > options_.events || bytes > options_.bytes)) break;
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

void AppendBatcher::run(const Waiters& batch) noexcept {
  std::vector<AppendVerdict> verdicts;
  try {
    std::vector<AppendRequest> requests;
    requests.reserve(batch.size());
    for (const auto& waiter : batch) requests.push_back(waiter->request);
    verdicts = flush_(requests);
  } catch (...) {
    verdicts.assign(batch.size(), std::current_exception());
  }
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i]->finish(std::move(verdicts.at(i)));
}

void AppendBatcher::hand_over() {
  const MutexLock lock(mutex_);
  if (queue_.empty()) {
    led_ = false;
    idle_.notify_all();
    return;
  }
  queue_.front()->call(Waiter::Call::lead);
}

void AppendBatcher::close() noexcept {
  std::deque<std::shared_ptr<Waiter>> late;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    // Whoever was called to lead leads, with an empty batch behind him if need be; the others go.
    while (led_) {
      late.clear();
      if (!queue_.empty()) {
        const bool first_leads = queue_.front()->leads();
        late.assign(queue_.begin() + (first_leads ? 1 : 0), queue_.end());
        queue_.resize(first_leads ? 1 : 0);
      }
      for (const auto& waiter : late) waiter->finish(std::make_exception_ptr(closed_error()));
      if (led_) idle_.wait(mutex_);
    }
  }
}

std::size_t AppendBatcher::waiting() const {
  const MutexLock lock(mutex_);
  return queue_.size();
}

}  // namespace postrider
