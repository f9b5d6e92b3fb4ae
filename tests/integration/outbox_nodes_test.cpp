// SPDX-License-Identifier: Apache-2.0
// Adopted transactions, backpressure, and what an outbox does when it isn't alone or isn't running.
#include <functional>
#include <thread>
#include <vector>

#include "core/failpoint.hpp"
#include "integration/outbox_fixture.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

class OutboxNodes : public OutboxTest {
 protected:
  void TearDown() override { failpoints::clear(); }
};

TEST_P(OutboxNodes, AnAdoptedTransactionIsDeliveredAtOnceWhenSignalled) {
  open();
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto foreign = connect_foreign();
  foreign->begin();
  AdoptedTx tx = foreign->adopt();
  EXPECT_TRUE(tx.active());
  Staged staged = outbox.publish(tx, {event("T", "1"), event("T", "2")});
  foreign->commit();
  EXPECT_FALSE(tx.active());
  EXPECT_EQ(seen_.count(), 0U);
  staged.committed();
  staged.committed();  // again does nothing
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));
  EXPECT_EQ(seen_.count(), 2U);
  EXPECT_EQ(status(staged.id()), EventStatus::done);
}

TEST_P(OutboxNodes, AForgottenSignalCostsLatencyNotTheEvent) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto foreign = connect_foreign();
  publish_adopted(outbox, *foreign, event());
  EXPECT_EQ(outbox.poll(), 0U) << "the signal may still come";
  clock_.advance(1001ms);
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(seen_.await(1));
}

TEST_P(OutboxNodes, ASignalThatComesTooLateDeliversNothingTwice) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto foreign = connect_foreign();
  Staged staged = publish_adopted(outbox, *foreign, event());
  clock_.advance(2s);
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  staged.committed();
  outbox.stop();
  EXPECT_EQ(seen_.count(), 1U);
}

TEST_P(OutboxNodes, AnAdoptedConnectionWithoutATransactionIsRefused) {
  open();
  Outbox outbox{*storage_, options()};
  const auto foreign = connect_foreign();
  AdoptedTx tx = foreign->adopt();
  EXPECT_FALSE(tx.active());
  EXPECT_THROW(outbox.publish(tx, event()), Error);
}

TEST_P(OutboxNodes, ANodeThatOnlyPublishesLeavesItsRowsToTheOthers) {
  open();
  Outbox publisher{*storage_, options()};
  const EventId id = publish(publisher, event());
  EXPECT_EQ(row(id)->owner, "");
  EXPECT_EQ(metrics_.get(Counter::hot_dropped), 0U) << "nothing was dropped: there is no queue";
  Outbox worker{*storage_, options()};
  start(worker);
  ASSERT_TRUE(seen_.await(1));
}

TEST_P(OutboxNodes, AStopBetweenInsertAndCommitFreesTheRow) {
  open(true);
  Outbox first{*storage_, without_poller()};
  start(first);
  auto tx = storage_->begin();
  const EventId id = first.publish(tx, event()).id();
  // On SQLite the open transaction holds the one writer, so the stop has nothing to write.
  first.stop();
  tx.commit();
  EXPECT_EQ(row(id)->owner, "");
  Outbox second{*storage_, without_poller()};
  start(second);
  EXPECT_EQ(second.poll(), 1U);
  ASSERT_TRUE(seen_.await(1));
}

TEST_P(OutboxNodes, ATransactionMayOutliveTheOutbox) {
  open();
  std::optional<Outbox> outbox;
  outbox.emplace(*storage_, options());
  start(*outbox);
  auto tx = storage_->begin();
  const EventId id = outbox->publish(tx, event()).id();
  outbox.reset();
  tx.commit();
  EXPECT_EQ(status(id), EventStatus::fresh);
  EXPECT_EQ(row(id)->owner, "");
}

TEST_P(OutboxNodes, APollerSkipsItsTurnWhenTheColdQueueIsFull) {
  open();
  testing::Signal entered;
  testing::Signal go;
  OutboxOptions small = without_poller();
  small.workers = 1;
  small.cold_queue_capacity = 3;
  {
    Outbox publisher{*storage_, options()};
    auto tx = storage_->begin();
    for (int i = 0; i < 10; ++i) publisher.publish(tx, event());
    tx.commit();
  }
  Outbox outbox{*storage_, small};
  outbox.on_all([&](const Event& event) {
    entered.set();
    EXPECT_TRUE(go.await());
    seen_(event, {Attempt{0}, Source::cold});
  });
  outbox.start();
  EXPECT_EQ(outbox.poll(), 3U);
  ASSERT_TRUE(entered.await());  // one runs, two wait
  EXPECT_EQ(outbox.poll(), 1U);
  EXPECT_EQ(outbox.poll(), 0U) << "no room, no claim";
  EXPECT_EQ(metrics_.get(Counter::claims), 2U);
  go.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 4));
}

TEST_P(OutboxNodes, ABacklogLargerThanTheQueuesIsWorkedOff) {
  open();
  constexpr std::size_t backlog = 700;
  {
    Outbox publisher{*storage_, options()};
    std::vector<Event> events;
    for (std::size_t i = 0; i < backlog; ++i) events.push_back(event());
    auto tx = storage_->begin();
    publisher.publish(tx, events);
    tx.commit();
  }
  OutboxOptions small = options();
  small.cold_queue_capacity = 64;
  small.poller_batch_size = 50;
  small.poller_interval = 1h;
  Outbox outbox{*storage_, small};
  start(outbox);
  ASSERT_TRUE(seen_.await(backlog));
  outbox.stop();
  EXPECT_EQ(times(seen_).size(), backlog);
  EXPECT_EQ(counts().pending, 0);
}

TEST_P(OutboxNodes, APollerOutlivesADatabaseThatFails) {
  open();
  std::atomic<int> left = 3;
  OutboxOptions quick = options();
  quick.poller_interval = 10ms;
  failpoints::set("outbox.claim.after", [&] {
    if (left-- > 0)
      throw Error(ErrorCode::unavailable, {.retryable = true}, "cannot claim", "the server went away");
  });
  Outbox outbox{*storage_, quick};
  start(outbox);
  ASSERT_TRUE(metrics_.await(Counter::poll_failures, 3));
  publish(outbox, event());
  ASSERT_TRUE(seen_.await(1));
}

TEST_P(OutboxNodes, StartWithoutTablesSaysWhatToDo) {
  open();
  storage_->migrate({.target = 0});
  Outbox outbox{*storage_, options()};
  try {
    outbox.start();
    FAIL() << "started without tables";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::schema);
    EXPECT_NE(std::string(error.what()).find("migrate"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(outbox.running());
}

TEST_P(OutboxNodes, DeadLettersCanBeSeenMendedAndReplayed) {
  open();
  Outbox outbox{*storage_, without_poller()};
  outbox.on_all([&](const Event& event) {
    if (event.payload() != R"({"fixed":true})") return Outcome::dead("the payload lacks 'fixed'");
    return seen_(event, {Attempt{0}, Source::cold});
  });
  outbox.start();
  publish(outbox, Event::builder("A").tenant("t1").json("{}").build());
  const EventId id = publish(outbox, Event::builder("B").tenant("t2").json("{}").build());
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));

  const DeadLetterFilter filter{.tenant_id = "t2"};
  EXPECT_EQ(outbox.admin().count_dead_letters(), 2);
  EXPECT_EQ(outbox.admin().count_dead_letters(filter), 1);
  const auto letters = outbox.admin().dead_letters(filter);
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].id, id);
  EXPECT_EQ(letters[0].last_error, "the payload lacks 'fixed'");

  EXPECT_THROW(outbox.admin().edit_dead_letter(id, PayloadKind::json, "{broken"), Error);
  EXPECT_TRUE(
      outbox.admin().edit_dead_letter(id, PayloadKind::json, R"({"fixed":true})", Headers{{"by", "me"}}));
  EXPECT_FALSE(outbox.admin().edit_dead_letter(EventId{"nobody"}, PayloadKind::json, "{}"));
  EXPECT_EQ(outbox.admin().replay_dead_letters(filter), 1);
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(seen_.await(1));
  EXPECT_EQ(seen_.events()[0].headers().at("by"), "me");
  EXPECT_EQ(counts().dead, 1);
}

TEST_P(OutboxNodes, ADelayedEventWakesThePollerInTime) {
  open();
  OutboxOptions lazy = options();
  lazy.poller_interval = 1h;
  Outbox outbox{*storage_, lazy};
  start(outbox);
  publish(outbox,
          Event::builder("T").deliver_at(std::chrono::system_clock::now() + 100ms).json("{}").build());
  ASSERT_TRUE(seen_.await(1));
}

TEST_P(OutboxNodes, ManyFarEventsDoNotKeepThePollerFromANearOne) {
  open();
  OutboxOptions lazy = options();
  lazy.poller_interval = 1h;
  lazy.retry_base_delay = 10ms;
  Outbox outbox{*storage_, lazy};
  start(outbox);
  // More than the poller remembers, each at a time of its own.
  const TimePoint far = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()) + 1h;
  std::vector<Event> events;
  for (int i = 0; i < 4200; ++i) {
    events.push_back(Event::builder("T").deliver_at(far + i * 10ms).json("{}").build());
  }
  {
    auto tx = storage_->begin();
    outbox.publish(tx, events);
    tx.commit();
  }
  seen_.fail_next(1);
  publish(outbox, event());
  ASSERT_TRUE(seen_.await(2)) << "the retry has to wait for the poller's interval";
}

TEST_P(OutboxNodes, StopInsideAListenerIsRefused) {
  open();
  Outbox outbox{*storage_, options()};
  std::string message;
  testing::Signal done;
  outbox.on_all([&](const Event&) {
    try {
      outbox.stop();
    } catch (const Error& error) {
      message = error.what();
    }
    done.set();
  });
  outbox.start();
  publish(outbox, event());
  ASSERT_TRUE(done.await());
  EXPECT_NE(message.find("called from one of its listeners"), std::string::npos) << message;
}

TEST_P(OutboxNodes, InlineDispatchBuriesARowThatCannotBeDecoded) {
  open();
  {
    auto tx = storage_->begin();
    tx.execute("insert into " + database_->table("outbox_event") +
               " (event_id, event_type, payload) values ('bad', '', '{}')");
    tx.commit();
  }
  OutboxOptions inline_options = options();
  inline_options.inline_dispatch = true;
  Outbox outbox{*storage_, inline_options};
  start(outbox);
  EXPECT_EQ(outbox.poll(), 1U);
  EXPECT_EQ(status(EventId{"bad"}), EventStatus::dead);
}

TEST_P(OutboxNodes, CommitsMayRaceTheEndOfTheOutbox) {
  open();
  for (int round = 0; round < 10; ++round) {
    std::optional<Outbox> outbox;
    outbox.emplace(*storage_, options());
    start(*outbox);
    auto tx = storage_->begin();
    for (int i = 0; i < 20; ++i) outbox->publish(tx, event());
    std::thread committer([&] { tx.commit(); });
    outbox.reset();
    committer.join();
  }
  Outbox rest{*storage_, options()};
  start(rest);
  ASSERT_TRUE(seen_.await(200)) << "what the ended ones did not deliver was given back";
  rest.stop();
  EXPECT_EQ(times(seen_).size(), 200U);
  EXPECT_EQ(counts().pending, 0);
}

TEST_P(OutboxNodes, AnEmptyListenerIsRefusedWhenItIsRegistered) {
  open();
  Outbox outbox{*storage_, options()};
  const std::function<void(const Event&)> empty;
  EXPECT_THROW(outbox.on("T", empty), Error);
}

TEST_P(OutboxNodes, APollOfAnOutboxThatDoesNotRunLeavesEverythingWhereItIs) {
  open();
  Outbox outbox{*storage_, without_poller()};
  outbox.on_all(seen_);
  const EventId id = publish(outbox, event());
  EXPECT_EQ(outbox.poll(), 0U);
  EXPECT_EQ(row(id)->owner, "") << "not claimed either";
  outbox.start();
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(seen_.await(1));
  outbox.stop();
  publish(outbox, event());
  EXPECT_EQ(outbox.poll(), 0U);
}

TEST_P(OutboxNodes, AFailedAttemptIsNotSilent) {
  open();
  std::vector<std::string> warnings;
  OutboxOptions chosen = without_poller();
  chosen.inline_dispatch = true;
  chosen.log = [&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::warning) << line;
    warnings.emplace_back(line);
  };
  Outbox outbox{*storage_, chosen};
  outbox.on("Fails", [](const Event&) { throw std::runtime_error("out of paper"); });
  outbox.start();
  for (int i = 0; i < 3; ++i) {
    publish(outbox, event("Fails"));
    publish(outbox, event("Unheard"));
  }
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(warnings[0].find("of type Fails failed: out of paper"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("no listener is registered for event type 'Unheard'"), std::string::npos)
      << warnings[1];
}

TEST_P(OutboxNodes, NonsenseThatWouldStopEveryPollerIsRefusedByTheTable) {
  open();
  const std::string insert =
      "insert into " + database_->table("outbox_event") + " (event_id, event_type, payload, ";
  for (const std::string& rest : {std::string("token) values ('a', 'T', '{}', 9223372036854775807)"),
                                  std::string("status) values ('b', 'T', '{}', 9)"),
                                  "available_at) values ('c', 'T', '{}', " +
                                      std::string(backend() == "postgres"  ? "'infinity'"
                                                  : backend() == "mariadb" ? "'0000-00-00'"
                                                                           : "'2024-01-01'") +
                                      ")"}) {
    auto tx = storage_->begin();
    EXPECT_THROW(tx.execute(insert + rest), Error) << rest;
  }
}

POSTRIDER_FOR_EACH_BACKEND(OutboxNodes);

}  // namespace
}  // namespace postrider
