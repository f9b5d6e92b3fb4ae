// SPDX-License-Identifier: Apache-2.0
#include "publishers/send_group.hpp"

#include <algorithm>
#include <utility>

namespace postrider {

PublishResult SendGroup::send(std::span<const SinkMessage> messages) {
  if (messages.empty()) return PublishResult::all();
  Waiter self{.messages = messages};
  {
    const MutexLock lock(mutex_);
    queue_.push_back(&self);
    if (!led_) {
      led_ = true;
      self.leads = true;
    }
    while (!self.done && !self.leads) self.woken.wait(mutex_);
    if (self.done) return self.result;
  }
  // Its own messages are the first in line, so one batch settles them.
  lead();
  const MutexLock lock(mutex_);
  hand_over();
  return self.result;
}

void SendGroup::lead() {
  std::vector<Waiter*> batch;
  {
    const MutexLock lock(mutex_);
    batch = take();
  }
  std::span<const SinkMessage> messages = batch.front()->messages;
  if (batch.size() > 1) {
    joined_.clear();
    for (const Waiter* one : batch) joined_.insert(joined_.end(), one->messages.begin(), one->messages.end());
    messages = joined_;
  }
  const PublishResult result = send_(messages);
  const MutexLock lock(mutex_);
  settle(batch, result, messages.size());
}

std::vector<SendGroup::Waiter*> SendGroup::take() {
  std::vector<Waiter*> batch;
  std::size_t size = 0;
  while (!queue_.empty() && (batch.empty() || size + queue_.front()->messages.size() <= most_)) {
    size += queue_.front()->messages.size();
    batch.push_back(queue_.front());
    queue_.pop_front();
  }
  return batch;
}

void SendGroup::settle(const std::vector<Waiter*>& batch, const PublishResult& result, std::size_t size) {
  const bool of_one = result.kind() == PublishResult::Kind::refused || result.is_unclear();
  const std::size_t sent = result.count(size);
  const std::vector<std::size_t>& behind = result.behind();
  std::vector<Waiter*> not_tried;
  std::size_t begin = 0;
  for (Waiter* one : batch) {
    const std::size_t end = begin + one->messages.size();
    const auto first = std::lower_bound(behind.begin(), behind.end(), begin);
    const auto last = std::lower_bound(first, behind.end(), end);
    const bool has_all = sent >= end || static_cast<std::size_t>(last - first) == end - begin;
    if (has_all) {
      end_with(*one, PublishResult::all());
    } else if (of_one && begin > sent) {  // behind somebody else's message that failed: not their fault
      not_tried.push_back(one);
    } else {
      end_with(*one, result.with_count(sent > begin ? sent - begin : 0));
    }
    begin = end;
  }
  if (result.kind() == PublishResult::Kind::unavailable && !of_one) {
    // Those that waited meanwhile would be the next to wait for a receiver that hangs.
    for (Waiter* one : queue_) end_with(*one, result.with_count(0));
    queue_.clear();
  }
  queue_.insert(queue_.begin(), not_tried.begin(), not_tried.end());
}

void SendGroup::end_with(Waiter& one, PublishResult result) {
  one.result = std::move(result);
  one.done = true;
  one.woken.notify_all();
}

void SendGroup::hand_over() {
  led_ = !queue_.empty();
  if (!led_) return;
  queue_.front()->leads = true;
  queue_.front()->woken.notify_all();
}

}  // namespace postrider
