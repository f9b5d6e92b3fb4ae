// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "postrider/detail/sync.hpp"
#include "postrider/sink.hpp"

namespace postrider::test {

/// Answers as told, `all` when nothing more was told, and notes what it got.
class ScriptedSink final : public Sink {
 public:
  PublishResult send(std::span<const SinkMessage> messages) override {
    const MutexLock lock(mutex_);
    std::vector<std::string> types;
    for (const SinkMessage& one : messages) types.push_back(one.event->type());
    batches_.push_back(std::move(types));
    arrived_.notify_all();
    while (held_) arrived_.wait(mutex_);
    if (answers_.empty()) return PublishResult::all();
    PublishResult answer = answers_.front();
    answers_.pop_front();
    return answer;
  }
  const std::string& name() const noexcept override { return name_; }

  void answer(PublishResult result) {
    const MutexLock lock(mutex_);
    answers_.push_back(std::move(result));
  }
  /// While held, `send` does not return.
  void hold(bool held) {
    {
      const MutexLock lock(mutex_);
      held_ = held;
    }
    arrived_.notify_all();
  }
  /// A test that they do not reach fails.
  void await_batches(std::size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    const MutexLock lock(mutex_);
    while (batches_.size() < count) {
      if (arrived_.wait_until(mutex_, end)) continue;
      ADD_FAILURE() << "the sink was sent " << batches_.size() << " batches, not " << count;
      return;
    }
  }
  std::vector<std::vector<std::string>> batches() const {
    const MutexLock lock(mutex_);
    return batches_;
  }

 private:
  const std::string name_ = "scripted";
  mutable Mutex mutex_;
  CondVar arrived_;
  bool held_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::deque<PublishResult> answers_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<std::vector<std::string>> batches_ POSTRIDER_GUARDED_BY(mutex_);
};

/// Events of these types, and messages of them.
struct Messages {
  explicit Messages(std::initializer_list<const char*> types) {
    for (const char* type : types) events.push_back(Event::json(type, "{}"));
    for (const Event& event : events) all.push_back({.event = &event});
  }
  std::vector<Event> events;
  std::vector<SinkMessage> all;
};

}  // namespace postrider::test
