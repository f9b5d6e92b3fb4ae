// SPDX-License-Identifier: Apache-2.0
// Twenty writers in three processes append under random conditions; one process is killed in the middle.
// Afterwards every decision is recomputed from what the events say: none is wrong, and no append is there in
// part.
//
// POSTRIDER_STORM_APPENDS says how many appends there are (100,000 for a thorough run), POSTRIDER_SEED
// repeats a run.
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "postrider/postrider.hpp"
#include "support/child_process.hpp"
#include "support/crash_run.hpp"
#include "support/stream_storm.hpp"

namespace postrider::test {
namespace {

const std::string program = std::string(CRASH_CHILD_DIR) + "/stream_child";

struct Written {
  unsigned type = 0;
  unsigned tags = 0;
  int query = -1;
  std::int64_t after = -1;
  int place = 0;
  int count = 0;
};

Written read_back(const StoredEvent& event) {
  Written written;
  written.type = static_cast<unsigned>(std::stoul(event.type().substr(4)));
  for (const Tag& tag : event.tags()) written.tags |= 1U << std::stoul(tag.key.substr(1));
  std::istringstream data{std::string(event.data().substr(1))};
  char comma = 0;
  data >> written.query >> comma >> written.after >> comma >> written.place >> comma >> written.count;
  return written;
}

class StreamStorm : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (!CrashDatabase::available(GetParam())) GTEST_SKIP() << "no server. Hint: scripts/with-servers";
    database_.emplace(GetParam());
    storage_ = database_->open();
    storage_->migrate();
  }
  void TearDown() override {
    if (database_ && HasFailure()) database_->keep();
  }
  [[nodiscard]] std::unique_ptr<ChildProcess> start(unsigned seed, int writers, int appends) const {
    return std::make_unique<ChildProcess>(
        std::vector<std::string>{program, database_->url(), database_->schema(), std::to_string(seed),
                                 std::to_string(writers), std::to_string(appends)});
  }

  std::optional<CrashDatabase> database_;
  std::unique_ptr<Storage> storage_;
};

TEST_P(StreamStorm, EveryDecisionWasRight) {
  const int appends = chosen_count("POSTRIDER_STORM_APPENDS", 3'000);
  const unsigned seed = chosen_seed();
  std::cout << "POSTRIDER_SEED=" << seed << "\n";
  std::vector<std::unique_ptr<ChildProcess>> nodes;
  for (unsigned i = 0; i < 3; ++i) nodes.push_back(start(seed * 10 + i, i == 2 ? 6 : 7, appends / 3));
  // The last one dies in the middle of it, and another one does the rest.
  const auto before = static_cast<std::size_t>(appends / 6);
  ASSERT_EQ(nodes.back()->skip_lines(before), before);
  EXPECT_TRUE(nodes.back()->kill().killed());
  nodes.back() = start(seed * 10 + 3, 6, appends / 3 - static_cast<int>(before));
  long accepted = 0;
  for (auto& node : nodes) {
    const auto last = node->read_until("done", std::chrono::minutes{20});
    ASSERT_TRUE(last.has_value());
    long mine = 0;
    std::istringstream(last->substr(5)) >> mine;
    accepted += mine;
    const auto end = node->wait();
    ASSERT_TRUE(end && end->ok());
  }

  std::vector<Written> events;  // by position, from 1 on
  EventStore store(*storage_);
  for (const StoredEvent& event : store.read()) {
    ASSERT_EQ(static_cast<std::size_t>(event.position()), events.size() + 1) << "a gap";
    events.push_back(read_back(event));
  }
  long batches = 0;
  long conditional = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Written& event = events[i];
    if (event.place > 0) {
      // In its place behind the others of its append.
      ASSERT_GT(i, 0U);
      ASSERT_EQ(events[i - 1].place, event.place - 1) << "position " << i + 1;
      ASSERT_EQ(events[i - 1].count, event.count);
    } else {
      ++batches;
      ASSERT_LE(i + static_cast<std::size_t>(event.count), events.size()) << "an append is there in part";
      ASSERT_EQ(events[i + static_cast<std::size_t>(event.count) - 1].place, event.count - 1);
    }
    if (event.place > 0 || event.query < 0) continue;
    ++conditional;
    const std::vector<StormItem> items = storm_items(static_cast<unsigned>(event.query));
    for (auto j = static_cast<std::size_t>(std::max<std::int64_t>(event.after, 0)); j < i; ++j) {
      for (const StormItem& item : items) {
        ASSERT_FALSE(item.matches(events[j].type, events[j].tags))
            << "position " << i + 1 << " was accepted behind " << event.after << ", although " << j + 1
            << " matches its query " << event.query;
      }
    }
  }
  std::cout << appends << " appends: " << batches << " accepted (" << conditional << " of them conditional), "
            << events.size() << " events\n";
  EXPECT_GE(batches, accepted) << "what was told to be there, is; the killed one told nobody";
  EXPECT_GT(conditional, appends / 20);
  EXPECT_LT(batches, appends) << "conflicts there were, too";
}

INSTANTIATE_TEST_SUITE_P(Backends, StreamStorm, ::testing::ValuesIn(crash_backends()),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

}  // namespace
}  // namespace postrider::test
