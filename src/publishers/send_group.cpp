// SPDX-License-Identifier: Apache-2.0
#include "publishers/send_group.hpp"

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
  const bool refused = result.kind() == PublishResult::Kind::refused;
  const std::size_t sent = result.count(size);
  std::vector<Waiter*> not_tried;
  std::size_t begin = 0;
  for (Waiter* one : batch) {
    const std::size_t end = begin + one->messages.size();
    if (refused && begin > sent) {  // behind somebody else's refused message, which is not their fault
      not_tried.push_back(one);
    } else {
      if (sent < end) {
        const std::size_t own = sent > begin ? sent - begin : 0;
        one->result = refused ? PublishResult::refused(own, result.reason())
                              : PublishResult::unavailable(own, result.reason(), result.retry_after());
      }
      one->done = true;
      one->woken.notify_all();
    }
    begin = end;
  }
  queue_.insert(queue_.begin(), not_tried.begin(), not_tried.end());
}

void SendGroup::hand_over() {
  led_ = !queue_.empty();
  if (!led_) return;
  queue_.front()->leads = true;
  queue_.front()->woken.notify_all();
}

}  // namespace postrider
