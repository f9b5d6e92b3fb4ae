// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <thread>

#include "core/failpoint.hpp"
#include "integration/relay_fixture.hpp"
#include "postrider/event_store.hpp"
#include "storage/lease_store.hpp"
#include "storage/wake_channel.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Counter = testing::RecordingMetrics::Counter;

class RelayPublishes : public RelayTest {};
POSTRIDER_FOR_EACH_BACKEND(RelayPublishes);

TEST_P(RelayPublishes, EachTopicsEventsInOrderToEachOfItsPublishers) {
  append(250, "Moved", {{"wallet_id", "1"}});
  append(10, "Renamed", {{"user", "1"}});
  append(50, "Moved", {{"wallet_id", "2"}});
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"))
      .add({.name = "wallets", .required_tags = {"wallet_id"}}, latch("q"))
      .add({.name = "two", .event_types = {"Moved"}, .exact_tags = {{"wallet_id", "2"}}}, latch("r"))
      .add({.name = "wallets", .required_tags = {"wallet_id"}}, latch("s"));
  EXPECT_EQ(relay.run_once(), 310U + 300U + 50U + 300U);
  EXPECT_EQ(latch("p")->positions(), range(1, 310));
  EXPECT_THAT(latch("q")->positions(), SizeIs(300));
  EXPECT_EQ(latch("q")->positions(), latch("s")->positions());
  EXPECT_EQ(latch("r")->positions(), range(261, 310));
  EXPECT_EQ(latch("p")->received()[0].epoch, status("all", "p").epoch);
  append(5);
  EXPECT_EQ(relay.run_once(), 5U);
  EXPECT_EQ(relay.run_once(), 0U);
  EXPECT_EQ(status("all", "p").position, Position{315});
  EXPECT_EQ(status("all", "p").lag_events, 0);
}

TEST_P(RelayPublishes, ARelayCannotBeDrivenFromInsideAPublisher) {
  append(1);
  Relay relay(storage(), options("a"));
  int refused = 0;
  latch("p")->answer([&](std::span<const StoredEvent>) {
    const std::vector<std::function<void()>> calls{[&] { relay.start(); }, [&] { relay.stop(); },
                                                   [&] { (void)relay.run_once(); }};
    for (const auto& call : calls) {
      try {
        call();
      } catch (const Error& error) {
        if (error.code() == ErrorCode::invalid_argument) ++refused;
      }
    }
    return PublishResult::all();
  });
  relay.add({.name = "all"}, latch("p"));
  EXPECT_EQ(relay.run_once(), 1U);
  EXPECT_EQ(refused, 3);
}

TEST_P(RelayPublishes, NewPairsStartWhereTheyAreTold) {
  append(10);
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("beginning"))
      .add({.name = "all"}, latch("head"), {.start = StartAt::head()})
      .add({.name = "all"}, latch("after"), {.start = StartAt::after(Position{7})});
  relay.run_once();
  append(1);
  relay.run_once();
  EXPECT_EQ(latch("beginning")->positions(), range(1, 11));
  EXPECT_EQ(latch("head")->positions(), range(11, 11));
  EXPECT_EQ(latch("after")->positions(), range(8, 11));
}

TEST_P(RelayPublishes, WithThreadsAtOnceAfterAnAppendAndHandsOverAtOnce) {
  open(false);
  RelayOptions slow = options("a");
  slow.heartbeat = 100ms;
  slow.lease = 60s;  // nobody waits for it
  PairOptions pair;
  pair.polling_interval = 60s;
  const auto other = database_->open_another();
  Relay first(storage(), slow);
  Relay second(*other, slow);
  first.add({.name = "all"}, latch("p"), pair);
  second.add({.name = "all"}, latch("p"), pair);
  first.start();
  append(3);
  ASSERT_TRUE(latch("p")->await(3));
  second.start();
  append(3);
  ASSERT_TRUE(latch("p")->await(6)) << "woken by the append";
  first.stop();
  append(1);
  other->stream_grown()->notify();  // it may lead already, and polls once a minute
  ASSERT_TRUE(latch("p")->await(7)) << "the other one leads";
  EXPECT_EQ(latch("p")->positions(), range(1, 7)) << "each once";
  EXPECT_EQ(first.led(), 0U);
  EXPECT_EQ(second.led(), 1U);
  second.stop();
  EXPECT_EQ(status("all", "p").position, Position{7});
  EXPECT_EQ(status("all", "p").leader, "");
}

TEST_P(RelayPublishes, WhatAnotherNodeAppendsAtOnce) {
  open(false);
  if (storage().wake_channel() == nullptr) GTEST_SKIP() << "other nodes poll here";
  PairOptions pair;
  pair.polling_interval = 60s;  // nobody waits for it
  const auto other = database_->open_another();
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"), pair);
  relay.start();
  append(1);
  ASSERT_TRUE(latch("p")->await(1));
  EventStore elsewhere(*other);
  for (std::size_t number = 2; number <= 4; ++number) {
    elsewhere.append({AppendEvent::builder("Moved").data("{}").build()});
    ASSERT_TRUE(latch("p")->await(number)) << number;
  }
}

TEST_P(RelayPublishes, HazardS9AnotherNodeTriesAgainUntilItLeads) {
  append(3);
  Relay a(storage(), options("a"));
  Relay b(storage(), options("b"));
  a.add({.name = "all"}, latch("p"));
  b.add({.name = "all"}, latch("p"));
  EXPECT_EQ(a.run_once(), 3U);
  for (int i = 0; i < 5; ++i) {
    append(1);
    EXPECT_EQ(b.run_once(), 0U) << "a leads";
    clock_.advance(5s);
    EXPECT_EQ(a.run_once(), 1U) << "and renews";
  }
  ASSERT_THAT(admin().leaders(), SizeIs(1));
  EXPECT_EQ(admin().leaders()[0].node, a.node());
  EXPECT_EQ(admin().leaders()[0].pairs, 1);
  const Epoch epoch = admin().leaders()[0].epoch;
  append(1);
  clock_.advance(10s);  // a stands still
  EXPECT_EQ(b.run_once(), 1U);
  EXPECT_EQ(admin().leaders()[0].node, b.node());
  EXPECT_GT(admin().leaders()[0].epoch, epoch);
  EXPECT_EQ(admin().leaders()[0].since, clock_.now());
  append(1);
  EXPECT_EQ(a.run_once(), 0U) << "a has noticed";
  b.stop();
  EXPECT_EQ(a.run_once(), 1U) << "handed over at once";
  EXPECT_EQ(latch("p")->positions(), range(1, 10));
}

TEST_P(RelayPublishes, WhoeverOnlyWaitsToTakeOverIsSeenUntilItLeadsOrIsGone) {
  const auto standbys = [&] {
    std::vector<std::string> nodes;
    for (const StandbyStatus& one : admin().standbys()) nodes.push_back(one.node);
    return nodes;
  };
  Relay a(storage(), options("a"));
  Relay b(storage(), options("b"));
  Relay c(storage(), options("c"));
  for (Relay* const one : {&a, &b, &c}) one->add({.name = "all"}, latch("p"));
  a.run_once();
  EXPECT_THAT(standbys(), IsEmpty());
  b.run_once();
  c.run_once();
  EXPECT_THAT(standbys(), ElementsAre(b.node(), c.node()));
  const TimePoint begin = clock_.now();
  clock_.advance(6s);
  a.run_once();
  b.run_once();
  clock_.advance(6s);
  ASSERT_THAT(standbys(), ElementsAre(b.node())) << "c was not heard of for longer than a lease";
  EXPECT_EQ(admin().standbys()[0].since, begin);
  EXPECT_EQ(admin().standbys()[0].heartbeat, begin + 6s);
  c.run_once();
  clock_.advance(5s);  // a stands still
  append(1);
  EXPECT_EQ(b.run_once(), 1U);
  EXPECT_EQ(admin().leaders()[0].node, b.node());
  EXPECT_THAT(standbys(), ElementsAre(c.node())) << "b leads";
  EXPECT_THAT(storage().lease_store().list(), SizeIs(2)) << "the lease, and c";
  a.run_once();
  EXPECT_THAT(standbys(), ElementsAre(a.node(), c.node())) << "a has lost its lease, and lives";
  EXPECT_EQ(admin().list()[0].leader, b.node());
  c.stop();
  EXPECT_THAT(standbys(), ElementsAre(a.node())) << "stopped";
  b.stop();
  append(1);
  EXPECT_EQ(a.run_once(), 1U) << "a standby's row keeps nothing from being taken";
}

TEST_P(RelayPublishes, NodesThatShareThePairsLeadAndDoNotStandBy) {
  Relay a(storage(), options("a", Leadership::balanced));
  Relay b(storage(), options("b", Leadership::balanced));
  for (Relay* const one : {&a, &b}) one->add({.name = "all"}, latch("p"));
  for (int i = 0; i < 3; ++i) {
    a.run_once();
    b.run_once();
  }
  EXPECT_THAT(admin().leaders(), SizeIs(2)) << "also the one without a pair";
  EXPECT_THAT(admin().standbys(), IsEmpty());
}

TEST_P(RelayPublishes, HazardS10AFrozenLeaderThatWakesMovesNothing) {
  append(5);
  Relay a(storage(), options("a"));
  Relay b(storage(), options("b"));
  const auto frozen = std::make_shared<Latch>("p");
  a.add({.name = "all"}, frozen);
  b.add({.name = "all"}, latch("p"));
  frozen->answer([&](auto) {
    // In the middle of its batch a stands still for longer than its lease.
    clock_.advance(11s);
    EXPECT_EQ(b.run_once(), 5U);
    append(5);
    EXPECT_EQ(b.run_once(), 5U);
    return PublishResult::all();
  });
  EXPECT_EQ(a.run_once(), 5U) << "what it had begun; the receiver sees the old epoch";
  EXPECT_EQ(metrics_.get(Counter::relay_refused_writes), 1U);
  EXPECT_EQ(status("all", "p").position, Position{10});
  EXPECT_EQ(status("all", "p").leader, b.node());
  append(1);
  EXPECT_EQ(a.run_once(), 0U);
  EXPECT_EQ(a.led(), 0U);
  EXPECT_EQ(b.run_once(), 1U);
  EXPECT_EQ(latch("p")->positions(), range(1, 11));
  EXPECT_LT(frozen->received()[0].epoch, latch("p")->received()[0].epoch);
}

TEST_P(RelayPublishes, HazardS10TheEpochAloneRefusesALateWrite) {
  append(5);
  Relay a(storage(), options("a"));
  Relay b(storage(), options("b"));
  const auto frozen = std::make_shared<Latch>("p");
  a.add({.name = "all"}, frozen);
  b.add({.name = "all"}, latch("p"));
  latch("p")->set_healthy(false);
  frozen->answer([&](auto) {
    clock_.advance(11s);
    EXPECT_EQ(b.run_once(), 0U) << "it leads, and has not moved anything";
    return PublishResult::all();
  });
  a.run_once();
  EXPECT_EQ(status("all", "p").leader, b.node());
  EXPECT_EQ(status("all", "p").position, Position{0});
  EXPECT_EQ(metrics_.get(Counter::relay_refused_writes), 1U);
  latch("p")->set_healthy(true);
  clock_.advance(1s);
  EXPECT_EQ(b.run_once(), 5U);
}

TEST_P(RelayPublishes, HazardS10WhatALeaderDidNotWriteTheNextOnePublishesAgainInOrder) {
  append(5);
  Relay a(storage(), options("a"));
  Relay b(storage(), options("b"));
  const auto second = std::make_shared<Latch>("p");
  a.add({.name = "all"}, latch("p"));
  b.add({.name = "all"}, second);
  failpoints::set("relay.progress.before_write",
                  [] { throw Error(ErrorCode::unavailable, "the disk is away"); });
  EXPECT_THROW(a.run_once(), Error);
  failpoints::clear();
  EXPECT_EQ(latch("p")->positions(), range(1, 5));
  clock_.advance(11s);
  EXPECT_EQ(b.run_once(), 5U);
  EXPECT_EQ(second->positions(), range(1, 5)) << "from where the progress is";
}

TEST_P(RelayPublishes, HazardS11OneBadEventStopsThePairAndSaysWhy) {
  append(5);
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"), {.max_failures = 3}).add({.name = "all"}, latch("q"));
  latch("p")->answer([](std::span<const StoredEvent> events) -> PublishResult {
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].position() == Position{4}) return PublishResult::refused(i, "the field 'x' is missing");
    }
    return PublishResult::all();
  });
  for (int i = 0; i < 5; ++i) {
    relay.run_once();
    clock_.advance(2s);
  }
  EXPECT_EQ(latch("q")->positions(), range(1, 5));
  EXPECT_EQ(latch("p")->positions(), range(1, 3));
  const PairStatus failed = status("all", "p");
  EXPECT_EQ(failed.state, PairState::failed);
  EXPECT_EQ(failed.error_count, 3);
  EXPECT_THAT(failed.last_error, HasSubstr("position 4: the field 'x' is missing"));
  EXPECT_EQ(failed.position, Position{3});
  EXPECT_EQ(failed.lag_events, 2);
  EXPECT_EQ(failed.lag_time, 10s);
  latch("p")->answer({});
  EXPECT_EQ(relay.admin().resume(PairSelector::pair("all", "p")), 1U);
  relay.run_once();
  EXPECT_EQ(latch("p")->positions(), range(1, 5));
  EXPECT_EQ(status("all", "p").last_error, "");
}

TEST_P(RelayPublishes, HazardS11OrItGoesToTheDeadLetters) {
  append(5);
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"), {.poison = PoisonAction::dead_letter, .max_failures = 2});
  latch("p")->answer([](std::span<const StoredEvent> events) -> PublishResult {
    for (const StoredEvent& event : events) {
      if (event.position() == Position{2}) throw std::runtime_error("cannot be written as XML");
    }
    return PublishResult::all();
  });
  for (int i = 0; i < 4; ++i) {
    relay.run_once();
    clock_.advance(2s);
  }
  EXPECT_THAT(latch("p")->positions(), ElementsAre(Position{1}, Position{3}, Position{4}, Position{5}));
  EXPECT_EQ(status("all", "p").state, PairState::active);
  EXPECT_EQ(status("all", "p").position, Position{5});
  EXPECT_EQ(status("all", "p").dead_letters, 1);
  const std::vector<DeadLetter> letters = relay.admin().dead_letters();
  ASSERT_THAT(letters, SizeIs(1));
  EXPECT_EQ(letters[0].position, Position{2});
  EXPECT_THAT(letters[0].error, HasSubstr("cannot be written as XML"));
  EXPECT_EQ(relay.admin().discard_dead_letters(PairSelector::all()), 1U);
  EXPECT_THAT(relay.admin().dead_letters(), IsEmpty());
}

TEST_P(RelayPublishes, HazardS12PausingMeansThePairOrAllPairsOfThePublisher) {
  Relay relay(storage(), options("a"));
  relay.add({.name = "one"}, latch("p")).add({.name = "two"}, latch("p")).add({.name = "one"}, latch("q"));
  relay.run_once();
  relay.admin().pause(PairSelector::pair("one", "p"));
  append(1);
  EXPECT_EQ(relay.run_once(), 2U) << "its namesake in the other topic goes on";
  EXPECT_EQ(relay.admin().pause(PairSelector::of_publisher("p")), 2U);
  append(1);
  EXPECT_EQ(relay.run_once(), 1U);
  EXPECT_THAT(latch("q")->received(), SizeIs(2));
  EXPECT_EQ(relay.admin().resume(PairSelector::of_publisher("p")), 2U);
  EXPECT_EQ(relay.run_once(), 3U);
  EXPECT_THROW(relay.admin().pause(PairSelector::of_publisher("default")), Error) << "no such pair";
}

TEST_P(RelayPublishes, PausedByHandAsInTheSeed) {
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"));
  relay.run_once();
  const auto sql = [&](const std::string& set) {
    Transaction tx = storage().begin();
    tx.execute("update " + database_->table("outbox_topic_progress") + " set " + set +
               " where publisher = 'p'");
    tx.commit();
  };
  sql("status = 'PAUSED'");
  append(1);
  EXPECT_EQ(relay.run_once(), 0U);
  sql("status = 'ACTIVE', error_count = 0, last_error = NULL");
  EXPECT_EQ(relay.run_once(), 1U);
}

TEST_P(RelayPublishes, RewindAndSkip) {
  append(10);
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"));
  relay.run_once();
  EXPECT_EQ(relay.admin().move_to(PairSelector::pair("all", "p"), Position{7}), 1U);
  EXPECT_EQ(relay.run_once(), 3U) << "8, 9, 10 again";
  relay.admin().pause(PairSelector::all());
  relay.run_once();
  append(10);
  relay.admin().move_to(PairSelector::all(), Position{18});
  relay.admin().resume(PairSelector::all());
  EXPECT_EQ(relay.run_once(), 2U);
  EXPECT_EQ(latch("p")->positions().back(), Position{20});
  EXPECT_EQ(status("all", "p").position, Position{20});
}

TEST_P(RelayPublishes, LagAndBackoffAreVisible) {
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"));
  EXPECT_FALSE(relay.backoff("all", "p").has_value()) << "not led here";
  relay.run_once();
  for (int i = 0; i < 4; ++i) {
    clock_.advance(2s);
    relay.run_once();
  }
  EXPECT_TRUE(relay.backoff("all", "p")->backing_off);
  EXPECT_FALSE(relay.backoff("all", "none").has_value());
  latch("p")->set_healthy(false);
  append(4);
  clock_.advance(3s);
  relay.run_once();
  EXPECT_EQ(status("all", "p").lag_events, 4);
  EXPECT_EQ(status("all", "p").lag_time, 3s);
  EXPECT_EQ(status("all", "p").head, Position{4});
  EXPECT_EQ(status("all", "p").error_count, 0) << "an unhealthy publisher is no failure";
  latch("p")->set_healthy(true);
  clock_.advance(1s);
  EXPECT_EQ(relay.run_once(), 4U);
  EXPECT_EQ(status("all", "p").lag_time, 0s);
}

TEST_P(RelayPublishes, HazardS16ManyPairsAtTheHeadReadTheDatabaseOnce) {
  Relay relay(storage(), options("a"));
  for (int i = 0; i < 30; ++i)
    relay.add({.name = "t" + std::to_string(i % 6)}, latch("p" + std::to_string(i / 6)));
  relay.run_once();
  const auto before = metrics_.get(Counter::relay_tail_reads);
  for (int i = 0; i < 5; ++i) {
    append(2);
    EXPECT_EQ(relay.run_once(), 60U);
  }
  EXPECT_EQ(metrics_.get(Counter::relay_own_reads), 0U);
  EXPECT_LE(metrics_.get(Counter::relay_tail_reads) - before, 2U * 2 * 5) << "run_once looks twice";
}

TEST_P(RelayPublishes, BalancedNodesShareThePairsAndTakeOverFromEachOther) {
  std::vector<std::unique_ptr<Relay>> nodes;
  for (int n = 0; n < 3; ++n) {
    nodes.push_back(
        std::make_unique<Relay>(storage(), options("n" + std::to_string(n), Leadership::balanced)));
    for (int i = 0; i < 20; ++i) nodes.back()->add({.name = "t" + std::to_string(i)}, latch("p"));
  }
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (const auto& node : nodes) node->run_once();
      clock_.advance(1s);
    }
  };
  nodes[0]->run_once();
  EXPECT_EQ(nodes[0]->led(), 20U);
  rounds(4);
  for (const auto& node : nodes) EXPECT_THAT(node->led(), ::testing::AnyOf(6U, 7U));
  append(3);
  rounds(1);
  EXPECT_THAT(latch("p")->received(), SizeIs(60)) << "each of 20 pairs once, whoever leads it";
  nodes[0]->stop();
  nodes.erase(nodes.begin());
  append(1);
  rounds(1);
  EXPECT_THAT(latch("p")->received(), SizeIs(80)) << "handed over at once";
  EXPECT_EQ(nodes[0]->led() + nodes[1]->led(), 20U);
  const auto frozen = std::move(nodes[0]);
  nodes.erase(nodes.begin());
  clock_.advance(10s);
  append(1);
  rounds(1);
  EXPECT_EQ(nodes[0]->led(), 20U) << "its lease was over";
  EXPECT_THAT(latch("p")->received(), SizeIs(100));
  EXPECT_EQ(frozen->run_once(), 0U);
}

TEST_P(RelayPublishes, OptionsAreRefusedByName) {
  const auto refusal = [&](RelayOptions options) {
    try {
      const Relay relay(storage(), std::move(options));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({.lease = 1ms}), HasSubstr("RelayOptions::lease"));
  EXPECT_THAT(refusal({.heartbeat = 4s}), HasSubstr("heartbeat"));
  EXPECT_THAT(refusal({.workers = 0}), HasSubstr("workers"));
  Relay relay(storage(), options("a"));
  EXPECT_THROW(relay.add({.name = "t"}, latch("p"), {.batch_size = 0}), Error);
  EXPECT_THROW(relay.add({.name = ""}, latch("p")), Error);
}

}  // namespace
}  // namespace postrider
