// SPDX-License-Identifier: Apache-2.0
// What a restored backup, or somebody with SQL, does to a relay that runs.
#include "integration/relay_fixture.hpp"
#include "storage/progress_store.hpp"

namespace postrider {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RelayTrouble : public RelayTest {
 protected:
  void execute(const std::string& sql) {
    auto tx = storage().begin();
    tx.execute(sql);
    tx.commit();
  }
  /// As the backup had it.
  void set_back(std::int64_t head) {
    for (const char* const table : {"event_tags", "events"})
      execute("delete from " + database_->table(table) + " where position > " + std::to_string(head));
    execute("update " + database_->table("outbox_topic_progress") +
            " set last_position = " + std::to_string(head));
  }
  RelayOptions logging(const std::string& node) {
    RelayOptions all = options(node);
    all.log = [this](LogLevel, std::string_view line) {
      const MutexLock lock(log_mutex_);
      log_.emplace_back(line);
    };
    return all;
  }
  std::vector<std::string> logged() {
    const MutexLock lock(log_mutex_);
    return log_;
  }
  Mutex log_mutex_;
  std::vector<std::string> log_ POSTRIDER_GUARDED_BY(log_mutex_);
};
POSTRIDER_FOR_EACH_BACKEND(RelayTrouble);

TEST_P(RelayTrouble, HazardS1AStoreThatWasSetBackLosesNothingOfWhatComesAfterwards) {
  append(10, "Old", {{"wallet", "1"}});
  Relay relay(storage(), logging("a"));
  relay.add({.name = "all"}, latch("p")).add({.name = "new", .event_types = {"New"}}, latch("q"));
  relay.run_once();
  append(20, "Lost", {{"wallet", "1"}});
  relay.run_once();
  ASSERT_THAT(latch("p")->positions(), SizeIs(30));
  set_back(10);
  append(6, "New", {{"wallet", "1"}});
  relay.run_once();
  append(30, "New");
  relay.run_once();
  EXPECT_THAT(latch("p")->positions(), SizeIs(30 + 36));
  EXPECT_EQ(latch("q")->positions(), range(11, 46));
  EXPECT_EQ(status("all", "p").position, Position{46});
  EXPECT_EQ(status("new", "q").position, Position{46});
  EXPECT_THAT(logged(), Contains(HasSubstr("was set back")));
}

TEST_P(RelayTrouble, RowsThatSomebodyHasRemovedAreMadeAnew) {
  append(5);
  Relay relay(storage(), logging("a"));
  relay.add({.name = "all"}, latch("p"));
  relay.run_once();
  execute("delete from " + database_->table("outbox_topic_progress"));
  append(2);
  clock_.advance(61s);
  relay.run_once();
  relay.run_once();
  EXPECT_EQ(status("all", "p").position, Position{7});
  EXPECT_EQ(status("all", "p").leader, relay.node());
  EXPECT_EQ(latch("p")->positions().back(), Position{7});
  relay.stop();
}

TEST_P(RelayTrouble, APairIsForgottenWhenNobodyLeadsItAnyMore) {
  append(5);
  Relay relay(storage(), logging("a"));
  relay.add({.name = "all"}, latch("p")).add({.name = "other"}, latch("p"));
  relay.run_once();
  const PairSelector which = PairSelector::pair("all", "p");
  try {
    admin().forget(which);
    ADD_FAILURE() << "it is led";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::conflict);
    EXPECT_THAT(error.what(), HasSubstr("node " + relay.node() + " leads it"));
  }
  EXPECT_EQ(status("all", "p").position, Position{5});
  relay.stop();
  EXPECT_EQ(admin().forget(which), 1U);
  EXPECT_FALSE(admin().find("all", "p"));
  EXPECT_TRUE(admin().find("other", "p"));
  EXPECT_THROW(admin().forget(which), Error) << "there is none any more";
  EXPECT_FALSE(storage().relay_admin_store().forget({"other", "p"}, "somebody else"));
}

TEST_P(RelayTrouble, ARelayThatRunsFindsItsRowsAgain) {
  open(false);
  append(5);
  RelayOptions all = logging("a");
  all.heartbeat = 50ms;
  all.lease = 1s;
  Relay relay(storage(), all);
  relay.add({.name = "all"}, latch("p"));
  relay.start();
  ASSERT_TRUE(latch("p")->await(5));
  execute("delete from " + database_->table("outbox_topic_progress"));
  append(2);
  ASSERT_TRUE(latch("p")->await(12)) << "from the beginning, where it starts";
  relay.stop();
  EXPECT_THAT(logged(), Contains(HasSubstr("had forgotten how far 1 pair of this relay is")));
}

}  // namespace
}  // namespace postrider
