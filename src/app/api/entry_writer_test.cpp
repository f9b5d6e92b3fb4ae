// SPDX-License-Identifier: Apache-2.0
#include "app/api/entry_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

namespace postrider::api {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::SizeIs;

/// Notes how large each transaction was, and stands before a gate when told to.
class FakeStore final : public EntryStore {
 public:
  std::vector<InsertedEntry> insert(std::span<const Entry> entries) override {
    std::shared_future<void> gate;
    {
      const std::lock_guard lock(mutex_);
      sizes_.push_back(entries.size());
      gate = gate_;
    }
    ++begun;
    begun.notify_all();
    if (gate.valid()) gate.wait();
    if (failure.has_value()) throw *failure;
    std::vector<InsertedEntry> inserted;
    for (const Entry& entry : entries) {
      if (entry.details == "bad") throw Error(ErrorCode::database, "refused");
      inserted.push_back({.id = EntryId{std::stoi(entry.step)}});
    }
    return inserted;
  }
  EntryPage find(const EntryQuery& /*query*/) override { return {}; }
  std::optional<StoredEntry> get(EntryId /*id*/) override { return std::nullopt; }
  std::int64_t count_before(TimePoint /*time*/) override { return 0; }
  std::int64_t purge_before(TimePoint /*time*/, std::size_t /*limit*/) override { return 0; }

  std::promise<void> close_gate() {
    std::promise<void> opener;
    const std::lock_guard lock(mutex_);
    gate_ = opener.get_future().share();
    return opener;
  }
  std::vector<std::size_t> sizes() {
    const std::lock_guard lock(mutex_);
    return sizes_;
  }
  std::atomic<int> begun{0};
  std::optional<Error> failure;  // set before use

 private:
  std::mutex mutex_;
  std::vector<std::size_t> sizes_;
  std::shared_future<void> gate_;
};

Entry numbered(int number, std::string details = {}) {
  Entry entry;
  entry.step = std::to_string(number);
  entry.details = std::move(details);
  return entry;
}

class EntryWriterTest : public ::testing::Test {
 protected:
  using Result = std::variant<EntryWriter::Outcomes, Error>;
  static std::vector<Entry> entries(int first, int count) {
    std::vector<Entry> made;
    for (int i = 0; i < count; ++i) made.push_back(numbered(first + i));
    return made;
  }
  std::optional<std::future<Result>> submit(EntryWriter& writer, std::vector<Entry> of) {
    auto promise = std::make_shared<std::promise<Result>>();
    std::future<Result> future = promise->get_future();
    if (!writer.submit(std::move(of), [promise](Result result) { promise->set_value(std::move(result)); })) {
      return std::nullopt;
    }
    return future;
  }
  static std::vector<int> ids(std::future<Result>& future) {
    std::vector<int> numbers;
    const Result result = future.get();
    for (const EntryWriter::Outcome& one : std::get<EntryWriter::Outcomes>(result)) {
      const auto* inserted = std::get_if<InsertedEntry>(&one);
      numbers.push_back(inserted == nullptr ? -1 : static_cast<int>(inserted->id));
    }
    return numbers;
  }
  void await_begun(int count) {
    for (int now = store_.begun; now < count; now = store_.begun) store_.begun.wait(now);
  }

  FakeStore store_;
};

TEST_F(EntryWriterTest, AFailureIsSeenUntilItIsOverOrOld) {
  ManualClock clock;
  EntryWriter writer(store_, {.clock = &clock, .log = [](LogLevel, std::string_view) {}});
  EXPECT_FALSE(writer.failing());
  store_.failure = Error(ErrorCode::storage_full, "the disk is full");
  (void)submit(writer, entries(1, 1)).value().get();
  EXPECT_TRUE(writer.failing());
  clock.advance(11s);
  EXPECT_FALSE(writer.failing()) << "whoever is sent nothing while it fails would never hear that it works";
  (void)submit(writer, entries(1, 1)).value().get();
  EXPECT_TRUE(writer.failing());
  store_.failure.reset();
  (void)submit(writer, entries(1, 1)).value().get();
  EXPECT_FALSE(writer.failing());
}

TEST_F(EntryWriterTest, WhatComesDuringOneTransactionGoesIntoTheNextOne) {
  std::promise<void> gate = store_.close_gate();
  EntryWriter writer(store_, {});
  auto first = submit(writer, entries(1, 1)).value();
  await_begun(1);
  std::vector<std::future<Result>> rest;
  for (int i = 0; i < 100; ++i) rest.push_back(submit(writer, entries(10 + i, 1)).value());
  gate.set_value();
  EXPECT_THAT(ids(first), ElementsAre(1));
  for (int i = 0; i < 100; ++i) EXPECT_THAT(ids(rest[static_cast<std::size_t>(i)]), ElementsAre(10 + i));
  EXPECT_THAT(store_.sizes(), ElementsAre(1, 100)) << "a hundred clients, one commit";
}

TEST_F(EntryWriterTest, ATransactionIsBoundedAndCallsAreNotParted) {
  std::promise<void> gate = store_.close_gate();
  EntryWriter writer(store_, {.transaction_entries = 10});
  std::vector<std::future<Result>> all;
  all.push_back(submit(writer, entries(1, 1)).value());
  await_begun(1);
  for (const int count : {6, 4, 5, 25, 1}) all.push_back(submit(writer, entries(100, count)).value());
  gate.set_value();
  for (auto& one : all) (void)ids(one);
  EXPECT_THAT(store_.sizes(), ElementsAre(1, 10, 5, 25, 1));
}

TEST_F(EntryWriterTest, HazardL2WhatIsRefusedDoesNotRefuseItsNeighbours) {
  EntryWriter writer(store_, {});
  std::vector<Entry> batch = entries(1, 100);
  batch[17].details = "bad";
  batch[80].details = "bad";
  auto result = submit(writer, std::move(batch)).value();
  const std::vector<int> answers = ids(result);
  ASSERT_THAT(answers, SizeIs(100));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(answers[static_cast<std::size_t>(i)], i == 17 || i == 80 ? -1 : i + 1);
  }
  EXPECT_LT(store_.sizes().size(), 35U) << "halved, not one by one";
}

TEST_F(EntryWriterTest, AnOutageIsToldToAllAndToTheLogOnce) {
  store_.failure = Error(ErrorCode::unavailable, {.retryable = true}, "gone");
  std::atomic<int> told{0};
  EntryWriter writer(store_, {.log = [&](LogLevel, std::string_view) { ++told; }});
  for (int i = 0; i < 5; ++i) {
    const Result result = submit(writer, entries(1, 3)).value().get();
    ASSERT_TRUE(std::holds_alternative<Error>(result));
    EXPECT_EQ(std::get<Error>(result).code(), ErrorCode::unavailable);
  }
  writer.stop();
  EXPECT_EQ(told, 1);
  EXPECT_THAT(store_.sizes(), ElementsAre(3, 3, 3, 3, 3))
      << "tried once each: the client waits, and can repeat";
}

TEST_F(EntryWriterTest, AFullQueueSaysNoAndStopWritesWhatIsThere) {
  std::promise<void> gate = store_.close_gate();
  EntryWriter writer(store_, {.queue_capacity = 2});
  auto first = submit(writer, entries(1, 1)).value();
  await_begun(1);
  auto second = submit(writer, entries(2, 1)).value();
  auto third = submit(writer, entries(3, 1)).value();
  EXPECT_FALSE(submit(writer, entries(4, 1)).has_value());
  gate.set_value();
  writer.stop();
  EXPECT_THAT(ids(first), ElementsAre(1));
  EXPECT_THAT(ids(second), ElementsAre(2));
  EXPECT_THAT(ids(third), ElementsAre(3));
  EXPECT_FALSE(submit(writer, entries(5, 1)).has_value()) << "after the end";
}

TEST(EntryWriter, WhatNobodyWaitsForAnyMoreIsNotWritten) {
  FakeStore store;
  EntryWriter writer(store, {.transaction_entries = 10});
  std::promise<void> opener = store.close_gate();
  std::atomic<int> done{0};
  std::atomic<bool> wanted{true};
  const auto count = [&](const auto&) { ++done; };
  const auto submit = [&](int step, const EntryWriter::Wanted& asked) {
    Entry entry;
    entry.step = std::to_string(step);
    EXPECT_TRUE(writer.submit({entry}, count, asked));
  };
  submit(1, [] { return true; });
  store.begun.wait(0);
  for (int i = 2; i < 5; ++i) submit(i, [&] { return wanted.load(); });
  submit(5, {});
  EXPECT_EQ(writer.unfinished(), 5U);
  wanted = false;  // their time is over while the first is being written
  opener.set_value();
  writer.stop();
  EXPECT_THAT(store.sizes(), ElementsAre(1, 1)) << "the fifth alone";
  EXPECT_EQ(done, 2);
  EXPECT_EQ(writer.unfinished(), 0U);
}

}  // namespace
}  // namespace postrider::api
