// SPDX-License-Identifier: Apache-2.0
// The ways in which designs like this one lose, double or strand events; each must be impossible here. The
// hazards that need a killed process or a cut connection are in tests/crash; O4, O7 and O12 have their
// store's side in the conformance suite.
#include <atomic>
#include <thread>
#include <vector>

#include "core/failpoint.hpp"
#include "core/inflight.hpp"
#include "integration/outbox_fixture.hpp"
#include "outbox/client.hpp"
#include "outbox/completer.hpp"
#include "outbox/dispatcher.hpp"
#include "outbox/registry.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

class OutboxHazards : public OutboxTest {
 protected:
  void TearDown() override { failpoints::clear(); }
};

/// A listener that stays inside an event until it is let go.
class Gate {
 public:
  void operator()(const Event&) {
    entered.set();
    EXPECT_TRUE(open.await());
  }
  testing::Signal entered;
  testing::Signal open;
};

TEST_P(OutboxHazards, HazardO1_TwoNodesNeverDeliverTheSameRow) {
  open();
  constexpr std::size_t events = 400;
  {
    Outbox publisher{*storage_, options()};  // never started: its rows are free for all
    std::vector<Event> batch;
    for (std::size_t i = 0; i < events; ++i) batch.push_back(event());
    auto tx = storage_->begin();
    publisher.publish(tx, batch);
    tx.commit();
  }
  const auto other_storage = database_->open_another();
  OutboxOptions small = options();
  small.poller_batch_size = 7;
  Outbox one{*storage_, small};
  Outbox two{*other_storage, small};
  one.on_all(seen_);
  two.on_all(seen_);
  one.start();
  two.start();
  ASSERT_TRUE(seen_.await(events));
  one.stop();
  two.stop();
  EXPECT_EQ(times(seen_).size(), events);
  EXPECT_EQ(seen_.count(), events) << "some event was delivered twice";
  EXPECT_EQ(counts().done, static_cast<std::int64_t>(events));
  EXPECT_EQ(metrics_.get(Counter::stale_completions), 0U);
}

TEST_P(OutboxHazards, HazardO2_NoPollerTakesARowFromTheHotPath) {
  open(true);
  Gate gate;
  OutboxOptions manual = without_poller();
  manual.workers = 1;
  manual.lease = 30s;
  Outbox owner{*storage_, manual};
  owner.on_all([&](const Event& event) { gate(event); });
  owner.start();
  publish(owner, event());
  ASSERT_TRUE(gate.entered.await());
  publish(owner, event());  // waits in the hot queue

  Outbox other{*storage_, manual};
  start(other);
  EXPECT_EQ(other.poll(), 0U) << "rows are born leased";
  EXPECT_EQ(owner.poll(), 0U) << "not even by this node's own poller";
  gate.open.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));
  EXPECT_EQ(seen_.count(), 0U);
  EXPECT_EQ(counts().done, 2);
}

TEST_P(OutboxHazards, HazardO2_ASlowListenerKeepsItsLeaseWhileItsNodeLives) {
  open(true);
  Gate gate;
  OutboxOptions manual = without_poller();
  manual.lease = 30s;
  Outbox owner{*storage_, manual};
  owner.on_all([&](const Event& event) { gate(event); });
  owner.start();
  const EventId id = publish(owner, event());
  ASSERT_TRUE(gate.entered.await());

  Outbox other{*storage_, manual};
  start(other);
  // Four lease times, in steps that give the owner's lease keeper its chance, as real time would: it must
  // have gone to sleep again before each step. Both nodes have a keeper.
  for (int i = 0; i < 12; ++i) {
    while (clock_.waiters() < 2) std::this_thread::yield();
    clock_.advance(10s + 1ms);
    while (clock_.waiters() < 2) std::this_thread::yield();
    EXPECT_EQ(other.poll(), 0U) << "step " << i;
  }
  gate.open.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  EXPECT_EQ(status(id), EventStatus::done);
  EXPECT_EQ(seen_.count(), 0U);
}

/// A node without lease keeper and poller, as if it had been stopped in its tracks (SIGSTOP) and woken up
/// later.
struct StalledNode {
  StalledNode(OutboxStore& store, Clock& clock, MetricsExporter& metrics, Duration lease,
              const Listener& listener)
      : in_flight(clock),
        completer(
            store,
            {.batch_size = 1, .linger = 0ms, .clock = &clock, .metrics = &metrics, .log = [](auto, auto) {}},
            [this](auto results) { dispatcher->flushed(results); }),
        dispatcher(std::make_shared<OutboxDispatcher>(store, listeners, completer, in_flight,
                                                      DispatcherOptions{.workers = 1,
                                                                        .lease = lease,
                                                                        .retry = {&policy, 10},
                                                                        .clock = &clock,
                                                                        .metrics = &metrics,
                                                                        .log = [](auto, auto) {}})),
        client(
            store, dispatcher,
            {.owner = "stalled", .lease = lease, .clock = &clock, .metrics = &metrics, .log = [](auto, auto) {
             }}) {
    listeners.add_for_all(listener);
    completer.start();
    dispatcher->start();
  }
  ~StalledNode() {
    dispatcher->stop();
    completer.stop();
  }

  ExponentialBackoffRetryPolicy policy;
  ListenerRegistry listeners;
  InFlightTracker in_flight;
  Completer completer;
  std::shared_ptr<OutboxDispatcher> dispatcher;
  OutboxClient client;
};

TEST_P(OutboxHazards, HazardO3_ACopyWhoseLeaseWentToAnotherNodeIsNotRun) {
  open(true);
  testing::RecordingMetrics stalled_metrics;
  testing::RecordingListener by_stalled;
  Gate gate;
  StalledNode stalled(storage_->outbox_store(), clock_, stalled_metrics, 30s, [&](const Event& event) {
    by_stalled(event, {Attempt{0}, Source::hot});
    if (event.payload() == "1") gate(event);
  });
  const Event first = event("T", "1");
  const Event second = event("T", "2");
  {
    auto tx = storage_->begin();
    stalled.client.publish(tx, std::vector<Event>{first, second});
    tx.commit();
  }
  ASSERT_TRUE(gate.entered.await());  // the first is inside its listener, the second is queued
  clock_.advance(31s);

  Outbox other{*storage_, without_poller()};
  start(other);
  EXPECT_EQ(other.poll(), 2U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));

  gate.open.set();  // the stalled node wakes up
  ASSERT_TRUE(stalled_metrics.await(Counter::stale_completions, 2));
  EXPECT_EQ(by_stalled.count(), 1U) << "the second must not run here: its lease is another node's";
  EXPECT_EQ(times(seen_).at(second.id().str()), 1);
  EXPECT_EQ(status(first.id()), EventStatus::done);
  EXPECT_EQ(status(second.id()), EventStatus::done);
}

TEST_P(OutboxHazards, HazardO3_AnEventWhoseResultIsOnItsWayIsNotRunAgain) {
  open(true);
  testing::Signal flush_reached;
  testing::Signal flush_may_go;
  std::atomic<bool> first_flush = true;
  failpoints::set("outbox.complete.before", [&] {
    if (!first_flush.exchange(false)) return;
    flush_reached.set();
    EXPECT_TRUE(flush_may_go.await());
  });
  testing::RecordingMetrics stalled_metrics;
  StalledNode node(storage_->outbox_store(), clock_, stalled_metrics, 30s, seen_);
  const Event one = event();
  {
    auto tx = storage_->begin();
    node.client.publish(tx, {&one, 1});
    tx.commit();
  }
  ASSERT_TRUE(flush_reached.await());  // delivered, not yet written
  clock_.advance(31s);
  std::vector<ClaimedEvent> again =
      storage_->outbox_store().claim({.owner = "stalled", .lease = 30s, .limit = 10, .continue_keys = {}});
  ASSERT_EQ(again.size(), 1U);
  std::vector<OutboxItem> cold{
      {again[0].event, again[0].lease.token, Attempt{0}, Source::cold, {}, clock_.steady_now() + 30s, {}, 2}};
  ASSERT_TRUE(node.dispatcher->enqueue_cold(cold));
  flush_may_go.set();
  node.dispatcher->stop();
  node.completer.stop();
  EXPECT_EQ(seen_.count(), 1U);
  EXPECT_EQ(status(one.id()), EventStatus::done) << "the result follows its row to the newer claim";
}

TEST_P(OutboxHazards, HazardO3_AReplayIsNotTakenForTheOldDeath) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  seen_.answer_next(1, Outcome::dead("not yet"));
  start(outbox);
  testing::Signal written;
  testing::Signal go_on;
  failpoints::set("outbox.complete.after", [&] {
    written.set();
    EXPECT_TRUE(go_on.await());
  });
  const EventId id = publish(outbox, event());
  ASSERT_TRUE(
      written.await());  // the death is in the database, but this node still counts the event as in flight
  EXPECT_EQ(outbox.admin().replay_dead_letters({}), 1);
  EXPECT_EQ(outbox.poll(), 1U);
  failpoints::clear();
  go_on.set();
  ASSERT_TRUE(seen_.await(2)) << "the replayed event must run";
  outbox.stop();
  EXPECT_EQ(status(id), EventStatus::done);
}

TEST_P(OutboxHazards, HazardO3_ARetryThatIsDueWhileItsResultIsWrittenIsNotStranded) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  seen_.answer_next(1, Outcome::retry_after(0s));
  start(outbox);
  testing::Signal written;
  testing::Signal go_on;
  failpoints::set("outbox.complete.after", [&] {
    written.set();
    EXPECT_TRUE(go_on.await());
  });
  const EventId id = publish(outbox, event());
  ASSERT_TRUE(written.await());
  EXPECT_EQ(outbox.poll(), 1U);
  failpoints::clear();
  go_on.set();
  ASSERT_TRUE(seen_.await(2));
  outbox.stop();
  EXPECT_EQ(status(id), EventStatus::done);
}

TEST_P(OutboxHazards, HazardO4_ALateFailureCannotReviveADeadRow) {
  open(true);
  testing::RecordingMetrics stalled_metrics;
  Gate gate;
  StalledNode stalled(storage_->outbox_store(), clock_, stalled_metrics, 30s, [&](const Event& event) {
    gate(event);
    throw std::runtime_error("too late");
  });
  const Event one = event();
  {
    auto tx = storage_->begin();
    stalled.client.publish(tx, {&one, 1});
    tx.commit();
  }
  ASSERT_TRUE(gate.entered.await());
  clock_.advance(31s);
  Outbox other{*storage_, without_poller()};
  other.on_all([](const Event&) { return Outcome::dead("by the other node"); });
  other.start();
  EXPECT_EQ(other.poll(), 1U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));

  gate.open.set();
  ASSERT_TRUE(stalled_metrics.await(Counter::stale_completions, 1));
  EXPECT_EQ(status(one.id()), EventStatus::dead);
  EXPECT_EQ(row(one.id())->last_error, "by the other node");
}

TEST_P(OutboxHazards, HazardO5_AFailedWriteOfTheResultIsNotAFailedDelivery) {
  open();
  std::atomic<int> left = 2;
  failpoints::set("outbox.complete.before", [&] {
    if (left-- > 0)
      throw Error(ErrorCode::unavailable, {.retryable = true}, "cannot write", "the server went away");
  });
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const EventId id = publish(outbox, event());
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  EXPECT_EQ(status(id), EventStatus::done);
  EXPECT_EQ(row(id)->attempts, Attempt{0});
  EXPECT_EQ(seen_.count(), 1U);
  EXPECT_EQ(metrics_.get(Counter::flush_failures), 2U);
  EXPECT_EQ(metrics_.get(Counter::dispatch_failure), 0U);
}

TEST_P(OutboxHazards, HazardO6_StopGivesBackWhatItDidNotDeliver) {
  open(true);
  Gate gate;
  OutboxOptions hurried = without_poller();
  hurried.workers = 1;
  hurried.drain_timeout = 0ms;
  hurried.log = [&](LogLevel, std::string_view message) {
    if (message.find("back to the database") != std::string_view::npos) gate.open.set();
  };
  Outbox outbox{*storage_, hurried};
  outbox.on_all([&](const Event& event) { gate(event); });
  outbox.start();
  std::vector<Event> events;
  for (int i = 0; i < 20; ++i) events.push_back(event());
  {
    auto tx = storage_->begin();
    outbox.publish(tx, events);
    tx.commit();
  }
  ASSERT_TRUE(gate.entered.await());
  outbox.stop();
  EXPECT_EQ(counts().done, 1);
  EXPECT_EQ(counts().pending, 19);

  // No time has passed: the rest is free for anybody now, not only when the lease ends.
  Outbox next{*storage_, without_poller()};
  start(next);
  EXPECT_EQ(next.poll(), 19U);
  ASSERT_TRUE(seen_.await(19));
}

TEST_P(OutboxHazards, HazardO7_OneBadRowDoesNotStopTheBatch) {
  open();
  const std::string table = database_->table("outbox_event");
  const std::string bad_headers = backend() == "postgres" ? "'[1,2]'" : "'not json'";
  {
    auto tx = storage_->begin();
    tx.execute("insert into " + table +
               " (event_id, event_type, payload, headers) values ('bad', 'T', '{}', " + bad_headers + ")");
    tx.execute("insert into " + table +
               " (event_id, event_type, payload) values ('good', 'T', '{\"by\":\"hand\"}')");
    tx.commit();
  }
  Outbox outbox{*storage_, options()};
  start(outbox);
  ASSERT_TRUE(seen_.await(1));
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));
  EXPECT_EQ(seen_.events()[0].id().view(), "good");
  EXPECT_EQ(status(EventId{"good"}), EventStatus::done);
  EXPECT_EQ(status(EventId{"bad"}), EventStatus::dead);
  EXPECT_NE(row(EventId{"bad"})->last_error.find("cannot decode"), std::string::npos)
      << row(EventId{"bad"})->last_error;
  EXPECT_EQ(metrics_.get(Counter::dispatch_dead), 1U);
}

TEST_P(OutboxHazards, HazardO10_ASignalledRollbackIsNoPhantom) {
  open();
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  const auto foreign = connect_foreign();
  {
    foreign->begin();
    AdoptedTx tx = foreign->adopt();
    Staged staged = outbox.publish(tx, event());
    foreign->rollback();
    staged.committed();  // a lie
  }
  Staged staged = publish_adopted(outbox, *foreign, event("T", "2"));
  staged.committed();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  outbox.stop();
  EXPECT_EQ(payloads(seen_), std::vector<std::string>{"2"});
  EXPECT_EQ(seen_.received()[0].delivery.source, Source::hot);
}

TEST_P(OutboxHazards, HazardO11_AFailingCallbackDoesNotStopTheOthers) {
  open();
  Outbox outbox{*storage_, options()};
  start(outbox);
  auto tx = storage_->begin();
  tx.after_commit([] { throw std::runtime_error("first"); });
  outbox.publish(tx, event());
  bool ran = false;
  tx.after_commit([&] { ran = true; });
  tx.after_commit([] { throw std::runtime_error("second"); });
  try {
    tx.commit();
    FAIL() << "the failures were not reported";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::hook_failed);
    EXPECT_FALSE(error.retryable());
    EXPECT_NE(std::string(error.what()).find("first"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("second"), std::string::npos);
  }
  EXPECT_TRUE(ran);
  ASSERT_TRUE(seen_.await(1));
}

TEST_P(OutboxHazards, HazardO12_PurgeTakesFinishedRowsOnlyInSmallTransactions) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  outbox.on("T", seen_);
  outbox.on("Doomed", [](const Event&) { return Outcome::dead("no"); });
  outbox.start();
  std::vector<Event> events;
  for (int i = 0; i < 25; ++i) events.push_back(event());
  events.push_back(event("Doomed"));
  {
    auto tx = storage_->begin();
    outbox.publish(tx, events);
    tx.commit();
  }
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 26));
  outbox.stop();
  const EventId pending = publish(outbox, event());
  clock_.advance(std::chrono::hours{24 * 8});

  EXPECT_EQ(outbox.admin().purge({.dry_run = true}), 25);
  EXPECT_EQ(outbox.admin().purge({.batch_size = 10, .at_most = 15}), 15);
  EXPECT_EQ(counts().done, 10);
  EXPECT_EQ(outbox.admin().purge({.batch_size = 3}), 10);
  EXPECT_EQ(counts().done, 0);
  EXPECT_EQ(counts().dead, 1);
  EXPECT_EQ(status(pending), EventStatus::fresh);
  EXPECT_EQ(outbox.admin().purge({.status = EventStatus::dead}), 1);
  EXPECT_THROW(outbox.admin().purge({.status = EventStatus::fresh}), Error);
}

POSTRIDER_FOR_EACH_BACKEND(OutboxHazards);

}  // namespace
}  // namespace postrider
