// SPDX-License-Identifier: Apache-2.0
// Twenty writers in three processes append under random conditions, whose queries overlap in every way; one
// process is killed in the middle. Afterwards every decision is recomputed from what the events say: none was
// accepted or refused wrongly, and no append is there in part.
//
// POSTRIDER_STORM_APPENDS says how many appends there are (100,000 for a thorough run), POSTRIDER_SEED
// repeats a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

#include "postrider/postrider.hpp"
#include "support/crash_test.hpp"
#include "support/places.hpp"
#include "support/stream_storm.hpp"

namespace postrider::test {
namespace {

constexpr std::chrono::minutes patience{20};  // of a thorough run on a busy machine

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

class StreamStorm : public CrashTest {
 protected:
  StreamStorm() : CrashTest(test::crash_child("stream_child")) {}
  [[nodiscard]] std::unique_ptr<ChildProcess> start_writers(unsigned seed, int writers, int appends) const {
    return start({std::to_string(seed), std::to_string(writers), std::to_string(appends), refused_file()});
  }
  [[nodiscard]] std::string refused_file() const { return database_->folder() + "/refused"; }

  /// Whoever was refused was told of an event behind what he had seen, which his query matches. Returns how
  /// many that were.
  [[nodiscard]] long judge_refusals(const std::vector<Written>& events) const {
    std::ifstream in(refused_file());
    unsigned query = 0;
    std::int64_t after = 0;
    std::int64_t position = 0;
    long refused = 0;
    for (; in >> query >> after >> position; ++refused) {
      EXPECT_GT(position, after) << "query " << query;
      if (position < 1 || position > static_cast<std::int64_t>(events.size())) {
        ADD_FAILURE() << "query " << query << " is in conflict with position " << position
                      << ", which does not exist";
        continue;
      }
      const Written& event = events[static_cast<std::size_t>(position - 1)];
      const std::vector<StormItem> items = storm_items(query);
      EXPECT_TRUE(std::any_of(items.begin(), items.end(),
                              [&](const StormItem& item) { return item.matches(event.type, event.tags); }))
          << "query " << query << " does not match position " << position;
    }
    return refused;
  }
};

TEST_P(StreamStorm, EveryDecisionWasRight) {
  const int appends = chosen_count("POSTRIDER_STORM_APPENDS", 3'000);
  const unsigned seed = chosen_seed();
  std::cout << "POSTRIDER_SEED=" << seed << "\n";
  std::vector<std::unique_ptr<ChildProcess>> nodes;
  for (unsigned i = 0; i < 3; ++i) nodes.push_back(start_writers(seed * 10 + i, i == 2 ? 6 : 7, appends / 3));
  // The last one dies in the middle of it, and another one does the rest.
  ASSERT_TRUE(nodes.back()->read_until("half", patience));
  EXPECT_TRUE(nodes.back()->kill().killed());
  nodes.back() = start_writers(seed * 10 + 3, 6, appends / 6);
  long accepted = 0;
  for (auto& node : nodes) {
    const auto last = node->read_until("done", patience);
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
  const long refused = judge_refusals(events);
  std::cout << appends << " appends: " << batches << " accepted (" << conditional << " of them conditional), "
            << refused << " refused, " << events.size() << " events\n";
  EXPECT_GE(batches, accepted) << "what was told to be there, is; the killed one told nobody";
  EXPECT_GT(conditional, appends / 20);
  EXPECT_GT(refused, appends / 20);
}

POSTRIDER_FOR_EACH_CRASH_BACKEND(StreamStorm);

}  // namespace
}  // namespace postrider::test
