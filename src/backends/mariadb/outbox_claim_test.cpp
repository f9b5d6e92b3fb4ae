// SPDX-License-Identifier: Apache-2.0
// What only MariaDB can get wrong about claims: locks of others, and many claimers at once. The rest is in
// the conformance suite.
#include <gmock/gmock.h>

#include <future>
#include <map>

#include "backends/mariadb/mariadb_fixture.hpp"

namespace postrider::mariadb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using MariadbClaimTest = MariadbTest;

TEST_F(MariadbClaimTest, ALockedHeadHoldsItsFollowersBackAndNobodyWaits) {
  publish({event("1"), event("2"), event("3")}, "k");
  publish({event("free")});
  client().query("BEGIN");
  client().query("SELECT * FROM " + table() + " WHERE event_id = '1' FOR UPDATE");
  EXPECT_THAT(claim(), ElementsAre("free"));
  client().query("COMMIT");
  EXPECT_THAT(claim(), ElementsAre("1", "2", "3"));
}

TEST_F(MariadbClaimTest, ALockedFollowerEndsTheRun) {
  publish({event("1"), event("2"), event("3")}, "k");
  client().query("BEGIN");
  client().query("SELECT * FROM " + table() + " WHERE event_id = '2' FOR UPDATE");
  EXPECT_THAT(claim(), ElementsAre("1"));
  client().query("COMMIT");
}

TEST_F(MariadbClaimTest, WhatIsNotCommittedIsNotWaitedFor) {
  publish({event("1")}, "k");
  Transaction open = storage().begin();
  insert(open, {event("2")}, "k");
  insert(open, {event("3")});
  publish({event("4")}, "k");
  EXPECT_THAT(claim(), ElementsAre("1", "4"));
  open.rollback();
  EXPECT_THAT(claim(), IsEmpty());
}

TEST_F(MariadbClaimTest, ALongRunIsReadToItsEndAmongManyKeys) {
  std::vector<Event> long_run;
  for (int i = 0; i < 60; ++i) long_run.push_back(event("run" + std::to_string(100 + i)));
  publish(long_run, "long");
  for (int i = 0; i < 20; ++i) publish({event("other" + std::to_string(i))}, "key" + std::to_string(i));
  const std::vector<std::string> ids = claim(100);
  EXPECT_EQ(ids.size(), 80U);
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(ids[i], long_run[i].id().str());
}

TEST_F(MariadbClaimTest, ManyClaimersAndCompletersGetEveryRowOnceAndEveryKeyInOrder) {
  constexpr int keys = 5;
  constexpr int per_key = 40;
  for (int n = 0; n < per_key; ++n) {
    for (int k = 0; k < keys; ++k) {
      publish({event("k" + std::to_string(k) + "n" + std::to_string(100 + n))}, "key" + std::to_string(k));
    }
    publish({event("free" + std::to_string(n))});
  }
  Mutex mutex;
  std::map<std::string, std::vector<std::string>> seen;  // by key
  std::atomic<int> total{0};
  const auto work = [&](int node) {
    const std::string owner = "node" + std::to_string(node);
    std::vector<std::string> finished;
    for (int idle = 0; total < (keys + 1) * per_key && idle < 10'000; ++idle) {
      const auto claimed = store().claim(
          {.owner = owner, .lease = std::chrono::seconds{60}, .limit = 7, .continue_keys = finished});
      finished.clear();
      std::vector<Completion> done;
      for (const ClaimedEvent& c : claimed) {
        done.push_back({.lease = c.lease});
        if (!c.ordering_key.empty()) finished.push_back(c.ordering_key);
        const MutexLock lock(mutex);
        seen[c.ordering_key].push_back(c.lease.id.str());
      }
      EXPECT_EQ(store().complete(done), done.size());
      total += static_cast<int>(done.size());
    }
  };
  {
    std::vector<std::future<void>> nodes;
    for (int node = 0; node < 3; ++node) nodes.push_back(std::async(std::launch::async, work, node));
    for (auto& node : nodes) node.get();
  }
  EXPECT_EQ(total, (keys + 1) * per_key);
  for (const auto& [key, ids] : seen) {
    EXPECT_EQ(ids.size(), static_cast<std::size_t>(per_key)) << key;
    if (!key.empty()) {
      EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end())) << key;
    }
  }
}

}  // namespace
}  // namespace postrider::mariadb
