// SPDX-License-Identifier: Apache-2.0
// A scheduler without a database: events and progress in memory, time by hand.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "postrider/error.hpp"
#include "postrider/testing.hpp"
#include "relay/scheduler.hpp"

namespace postrider {

/// An event store that forgets nothing and counts how often it is read.
class MemoryStream final : public StreamStore {
 public:
  std::vector<AppendVerdict> append(std::span<const AppendRequest>) override { return {}; }
  AppendVerdict append(Tx&, const AppendRequest&) override { return Appended{}; }
  ReadPage read(const ReadRequest& request) override {
    const MutexLock lock(mutex_);
    ++reads_;
    if (broken_) throw Error(ErrorCode::unavailable, "the store is away");
    ReadPage page{.head = head_locked(), .seen = head_locked()};
    if (request.backwards) {  // as for the newest one alone
      if (!events_.empty()) page.events.push_back(events_.back());
      return page;
    }
    std::size_t bytes = 0;
    for (const StoredEvent& event : events_) {
      if (event.position() <= request.after || !request.query->matches(event)) continue;
      if (page.events.size() == request.limit || bytes >= request.max_bytes) {
        page.more = true;
        page.seen = page.events.back().position();
        break;
      }
      bytes += event.data().size();
      page.events.push_back(event);
    }
    given_ += page.events.size();
    changed_.notify_all();
    return page;
  }
  ReadPage read_at(std::span<const Position>, std::size_t) override { return {}; }
  Position head() override {
    const MutexLock lock(mutex_);
    return head_locked();
  }
  void check_schema() override {}

  void add(int count, const std::string& type = "Moved", const Tags& tags = {}) {
    const MutexLock lock(mutex_);
    for (int i = 0; i < count; ++i) {
      events_.push_back(StoredEvent({.position = Position{static_cast<std::int64_t>(events_.size()) + 1},
                                     .event = Event::json(type, "{}"),
                                     .tags = tags}));
    }
  }
  /// As a restored backup does it.
  void set_back(std::size_t head) {
    const MutexLock lock(mutex_);
    events_.resize(head, events_.front());
  }
  [[nodiscard]] int reads() const {
    const MutexLock lock(mutex_);
    return reads_;
  }
  /// Waits until so many events were read.
  bool await_events(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    const MutexLock lock(mutex_);
    while (given_ < count) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      changed_.wait_until(mutex_, deadline);
    }
    return true;
  }
  void break_down(bool broken) {
    const MutexLock lock(mutex_);
    broken_ = broken;
  }

 private:
  [[nodiscard]] Position head_locked() const POSTRIDER_REQUIRES(mutex_) {
    return events_.empty() ? Position{0} : events_.back().position();
  }
  mutable Mutex mutex_;
  std::vector<StoredEvent> events_ POSTRIDER_GUARDED_BY(mutex_);
  int reads_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::size_t given_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  CondVar changed_;
  bool broken_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

/// Takes steps in order, and refuses those that do not fit.
class MemoryProgress final : public ProgressStore {
 public:
  struct Row {
    Epoch epoch{};
    Position position{};
    int errors = 0;
    bool failed = false;
    std::vector<Position> dead{};
  };
  std::size_t add(std::span<const NewPair>) override { return 0; }
  std::vector<LedPair> take(const LeaseFence&, Taking, std::span<const PairName>,
                            std::span<const std::string>) override {
    return {};
  }
  std::vector<LedPair> led(std::string_view) override { return {}; }
  void give_back(std::string_view, std::span<const PairName>) override {}
  std::vector<bool> advance(std::span<const ProgressStep> steps) override {
    const MutexLock lock(mutex_);
    std::vector<bool> done;
    for (const ProgressStep& step : steps) {
      Row& row = rows_[step.name];
      const bool fits = row.epoch == step.epoch && row.position == step.from && step.to >= step.from;
      if (fits) {
        row.position = step.to;
        row.errors = 0;
        if (step.dead) row.dead.push_back(step.to);
      }
      done.push_back(fits);
    }
    ++writes_;
    return done;
  }
  std::vector<bool> fail(std::span<const PairFailure> failures) override {
    const MutexLock lock(mutex_);
    for (const PairFailure& failure : failures) {
      Row& row = rows_[failure.name];
      row.errors += failure.counted ? 1 : 0;
      row.failed = row.failed || failure.stop;
    }
    return std::vector<bool>(failures.size(), true);
  }
  PairCensus census(std::string_view, std::span<const std::string>) override { return {}; }

  Row row(const PairName& name) {
    const MutexLock lock(mutex_);
    return rows_[name];
  }
  void set(const PairName& name, Epoch epoch, Position position) {
    const MutexLock lock(mutex_);
    rows_[name] = {.epoch = epoch, .position = position};
  }
  [[nodiscard]] int writes() const {
    const MutexLock lock(mutex_);
    return writes_;
  }

 private:
  mutable Mutex mutex_;
  std::map<PairName, Row> rows_ POSTRIDER_GUARDED_BY(mutex_);
  int writes_ POSTRIDER_GUARDED_BY(mutex_) = 0;
};

inline std::vector<Position> range(int first, int last) {
  std::vector<Position> positions;
  for (int i = first; i <= last; ++i) positions.push_back(Position{i});
  return positions;
}

class SchedulerTest : public ::testing::Test {
 protected:
  using Latch = testing::Latch;

  void make(Scheduler::Options options = {}, Clock* clock = nullptr) {
    options.node = "node";
    options.clock = clock != nullptr ? clock : &clock_;
    options.metrics = &metrics_;
    options.log = [this](LogLevel, std::string_view line) {
      const MutexLock lock(log_mutex_);
      log_.emplace_back(line);
    };
    options.may_publish = [this] { return may_publish_.load(); };
    options.on_doubt = [this] { ++doubts_; };
    writer_ =
        std::make_unique<ProgressWriter>(progress_,
                                         ProgressWriter::Options{.stop_timeout = std::chrono::seconds{1},
                                                                 .clock = options.clock,
                                                                 .metrics = &metrics_,
                                                                 .log = options.log},
                                         [this](const auto& written) { scheduler_->on_written(written); });
    scheduler_ = std::make_unique<Scheduler>(stream_, *writer_, options);
  }
  void TearDown() override {
    if (scheduler_ != nullptr) scheduler_->stop();
    if (writer_ != nullptr) writer_->stop();
  }
  std::shared_ptr<Latch> add(const std::string& topic, const std::string& publisher, PairOptions options = {},
                             std::vector<std::string> types = {}) {
    auto& latch = latches_[publisher];
    if (latch == nullptr) latch = std::make_shared<Latch>(publisher);
    scheduler_->add({.name = topic, .event_types = std::move(types)}, latch, std::move(options));
    return latch;
  }
  /// Of topic "t"; takes nothing before the signal. Sets `held_` when it is called.
  std::shared_ptr<Latch> add_held(testing::Signal& release, const std::string& publisher = "p") {
    auto latch = add("t", publisher);
    latch->answer([&](auto) {
      held_.set();
      (void)release.await();
      return PublishResult::all();
    });
    return latch;
  }
  void lead(const std::string& topic, const std::string& publisher, int position = 0, int epoch = 1) {
    progress_.set({topic, publisher}, Epoch{epoch}, Position{position});
    scheduler_->lead({{.name = {topic, publisher}, .epoch = Epoch{epoch}, .position = Position{position}}});
  }
  /// All that is due now, and all of it written.
  void run() {
    for (bool more = true; more;) {
      writer_->flush();
      more = false;
      while (scheduler_->step()) more = true;
    }
  }
  void append_and_run(int count, const std::string& type = "Moved") {
    stream_.add(count, type);
    scheduler_->wake();
    run();
  }

  /// Since it was last asked.
  std::vector<std::string> logged() {
    const MutexLock lock(log_mutex_);
    return std::exchange(log_, {});
  }

  Mutex log_mutex_;
  std::vector<std::string> log_ POSTRIDER_GUARDED_BY(log_mutex_);
  ManualClock clock_;
  MemoryStream stream_;
  MemoryProgress progress_;
  testing::RecordingMetrics metrics_;
  std::atomic<bool> may_publish_{true};
  std::atomic<int> doubts_{0};
  testing::Signal held_;
  std::map<std::string, std::shared_ptr<Latch>> latches_;
  std::unique_ptr<ProgressWriter> writer_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace postrider
