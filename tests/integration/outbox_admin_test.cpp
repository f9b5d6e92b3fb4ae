// SPDX-License-Identifier: Apache-2.0
// Requeue and cancel while nodes run: whoever is in a listener meanwhile cannot overwrite what was decided.
#include <atomic>
#include <vector>

#include "integration/outbox_fixture.hpp"

namespace postrider {
namespace {

class OutboxOperating : public OutboxTest {
 protected:
  /// A listener that stays inside its events until it is let go.
  struct Gate {
    void operator()(const Event&) {
      entered.set();
      EXPECT_TRUE(open.await());
    }
    testing::Signal entered;
    testing::Signal open;
  };
  static OutboxFilter only(const EventId& id) {
    OutboxFilter filter;
    filter.ids = {id};
    return filter;
  }
};

TEST_P(OutboxOperating, AListenerThatRunsWhileItsEventIsCancelledCannotFinishIt) {
  for (const Outcome& outcome :
       {Outcome::done(), Outcome::failed("late"), Outcome::dead("late"), Outcome::retry_after(0s, "late")}) {
    open(true);
    Gate gate;
    Outbox outbox{*storage_, without_poller()};
    outbox.on_all([&](const Event& event) {
      gate(event);
      return outcome;
    });
    outbox.start();
    const EventId id = publish(outbox, event());
    ASSERT_TRUE(gate.entered.await());
    const std::size_t stale = metrics_.get(Counter::stale_completions);
    EXPECT_EQ(outbox.admin().cancel(only(id), "sold out"), 1);
    gate.open.set();
    ASSERT_TRUE(metrics_.await(Counter::stale_completions, stale + 1));
    outbox.stop();
    const OutboxRecord now = row(id).value();
    EXPECT_EQ(now.status, EventStatus::dead);
    EXPECT_EQ(now.last_error, "cancelled: sold out");
    EXPECT_EQ(now.attempts, Attempt{0});
    EXPECT_TRUE(now.history.empty());
    EXPECT_EQ(OutboxAdmin(*storage_).replay_dead_letters({.ids = {id}}), 1);
    Outbox again{*storage_, without_poller()};
    start(again);
    const std::size_t seen = seen_.count();
    EXPECT_EQ(again.poll(), 1U);
    ASSERT_TRUE(seen_.await(seen + 1)) << "a replay delivers it";
  }
}

TEST_P(OutboxOperating, AListenerThatRunsWhileItsEventIsRequeuedCannotOverwriteTheNextOnesResult) {
  open(true);
  Gate gate;
  Outbox hangs{*storage_, without_poller()};
  hangs.on_all([&](const Event& event) { gate(event); });
  hangs.start();
  const EventId id = publish(hangs, event());
  ASSERT_TRUE(gate.entered.await());

  testing::RecordingMetrics others;
  OutboxOptions quick = without_poller();
  quick.metrics = &others;
  quick.retry_max_attempts = 1;
  Outbox other{*storage_, quick};
  seen_.answer_next(1, Outcome::failed("refused"));
  start(other);
  EXPECT_EQ(other.poll(), 0U) << "it is the other node's";
  EXPECT_EQ(other.admin().stuck(0s).size(), 1U);
  EXPECT_EQ(other.admin().requeue(only(id)), 1);
  EXPECT_EQ(other.poll(), 1U);
  ASSERT_TRUE(others.await(Counter::flushed_events, 1));
  gate.open.set();
  ASSERT_TRUE(metrics_.await(Counter::stale_completions, 1));
  EXPECT_EQ(status(id), EventStatus::dead) << "the result of the node that has it";
  EXPECT_EQ(row(id)->last_error, "refused");
}

TEST_P(OutboxOperating, ANodeThatTakesARequeuedEventAgainGoesOnWithIt) {
  open(true);
  Gate gate;
  Outbox outbox{*storage_, without_poller()};
  outbox.on_all([&](const Event& event) { gate(event); });
  outbox.on_all(seen_);
  outbox.start();
  const EventId id = publish(outbox, event());
  ASSERT_TRUE(gate.entered.await());
  EXPECT_EQ(outbox.admin().requeue(only(id)), 1);
  EXPECT_EQ(outbox.poll(), 1U);
  gate.open.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  outbox.stop();
  EXPECT_EQ(status(id), EventStatus::done);
  EXPECT_EQ(seen_.count(), 1U) << "not a second time, and not at the same time";
}

/// Cancels, corrects and replays what a listener is in.
class OutboxCorrecting : public OutboxOperating {
 protected:
  static Event with_key(const std::string& key, const std::string& payload) {
    return Event::builder("T").ordering_key(key).json(payload).build();
  }
  void start_gated(Outbox& outbox) {
    outbox.on_all([this](const Event& event) {
      EXPECT_EQ(++inside_, 1) << "never two deliveries at once";
      delivered_.emplace_back(event.payload());
      if (event.payload() == "\"old\"") gate_(event);
      --inside_;
    });
    outbox.on_all(seen_);
    outbox.start();
  }
  static void correct(Outbox& outbox, const EventId& id) {
    EXPECT_EQ(outbox.admin().cancel(only(id), "wrong"), 1);
    EXPECT_TRUE(outbox.admin().edit_dead_letter(id, PayloadKind::json, "\"new\""));
    EXPECT_EQ(outbox.admin().replay_dead_letters({.ids = {id}}), 1);
  }

  Gate gate_;
  std::atomic<int> inside_{0};
  std::vector<std::string> delivered_;
};

TEST_P(OutboxCorrecting, ACorrectedEventIsDeliveredByTheNodeThatStillRunsTheOldOne) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  start_gated(outbox);
  const EventId id = publish(outbox, event("T", "\"old\""));
  ASSERT_TRUE(gate_.entered.await());
  correct(outbox, id);
  EXPECT_EQ(outbox.poll(), 1U);
  gate_.open.set();
  ASSERT_TRUE(seen_.await(2)) << "the correction was never delivered";
  ASSERT_TRUE(metrics_.await(Counter::stale_completions, 1)) << "the old run's result is refused";
  outbox.stop();
  EXPECT_EQ(delivered_, (std::vector<std::string>{"\"old\"", "\"new\""}));
  EXPECT_EQ(status(id), EventStatus::done);
  EXPECT_EQ(row(id)->payload, "\"new\"");
}

TEST_P(OutboxCorrecting, AReplayWithoutACorrectionIsDeliveredToo) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  start_gated(outbox);
  const EventId id = publish(outbox, event("T", "\"old\""));
  ASSERT_TRUE(gate_.entered.await());
  EXPECT_EQ(outbox.admin().cancel(only(id), "why not"), 1);
  EXPECT_EQ(outbox.admin().replay_dead_letters({.ids = {id}}), 1);
  EXPECT_EQ(outbox.poll(), 1U);
  gate_.open.set();
  ASSERT_TRUE(seen_.await(2));
  outbox.stop();
  EXPECT_EQ(status(id), EventStatus::done);
}

TEST_P(OutboxCorrecting, ACorrectedEventOfAKeyIsDeliveredBeforeThoseBehindIt) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  start_gated(outbox);
  const Event first = with_key("k", "\"old\"");
  {
    auto tx = storage_->begin();
    outbox.publish(tx, {first, with_key("k", "2")});
    tx.commit();
  }
  ASSERT_TRUE(gate_.entered.await());
  correct(outbox, first.id());
  EXPECT_EQ(outbox.poll(), 1U);
  gate_.open.set();
  // The old run's is refused; both rows go back, and come again in order.
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));
  EXPECT_EQ(outbox.poll(), 2U);
  ASSERT_TRUE(seen_.await(3));
  outbox.stop();
  EXPECT_EQ(delivered_, (std::vector<std::string>{"\"old\"", "\"new\"", "2"}));
  EXPECT_EQ(counts().done, 2);
}

TEST_P(OutboxCorrecting, AnOldLifeThatHasNotBegunIsNotDelivered) {
  open(true);
  OutboxOptions one_worker = without_poller();
  one_worker.workers = 1;
  Outbox outbox{*storage_, one_worker};
  start_gated(outbox);
  publish(outbox, event("T", "\"old\""));
  ASSERT_TRUE(gate_.entered.await());
  const EventId queued = publish(outbox, event("T", "\"queued\""));
  correct(outbox, queued);
  EXPECT_EQ(outbox.poll(), 1U);
  gate_.open.set();
  ASSERT_TRUE(seen_.await(2));
  outbox.stop();
  EXPECT_EQ(delivered_, (std::vector<std::string>{"\"old\"", "\"new\""}));
  EXPECT_EQ(counts().done, 2);
}

TEST_P(OutboxCorrecting, AnIdThatIsPurgedAndPublishedAgainIsDeliveredAgain) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  start_gated(outbox);
  const EventId id{"order-1"};
  publish(outbox, Event::builder("T").id(id).json("\"old\"").build());
  ASSERT_TRUE(gate_.entered.await());
  EXPECT_EQ(outbox.admin().cancel(only(id), "wrong"), 1);
  EXPECT_EQ(outbox.admin().purge({.status = EventStatus::dead, .older_than = 0s}), 1);
  publish(outbox, Event::builder("T").id(id).json("\"new\"").build());
  gate_.open.set();
  ASSERT_TRUE(seen_.await(2)) << "the second event was never delivered";
  outbox.stop();
  EXPECT_EQ(delivered_, (std::vector<std::string>{"\"old\"", "\"new\""}));
  EXPECT_EQ(status(id), EventStatus::done);
}

/// A key of which one event is in a listener of `hangs_` when another node takes it away.
class OutboxKeyRequeued : public OutboxOperating {
 protected:
  void start_hanging(OutboxOptions options) {
    hangs_ = std::make_unique<Outbox>(*storage_, std::move(options));
    hangs_->on_all([&](const Event& event) { gate_(event); });
    hangs_->on_all(by_hanging_);
    hangs_->start();
    other_ = std::make_unique<Outbox>(*storage_, without_poller());
    start(*other_);
  }
  void requeue_the_first() {
    OutboxFilter first;
    first.ids = {OutboxAdmin(*storage_).pending({}, 1).at(0).id};
    EXPECT_EQ(other_->admin().requeue(first), 1);
  }

  Gate gate_;
  testing::RecordingListener by_hanging_;
  std::unique_ptr<Outbox> hangs_;
  std::unique_ptr<Outbox> other_;
};

TEST_P(OutboxKeyRequeued, IsDeliveredInOrderFromThereOn) {
  open(true);
  OutboxOptions lingering = without_poller();
  lingering.completer_linger = 1s;  // the clock stands still: no result is written before both have run
  start_hanging(lingering);
  {
    auto tx = storage_->begin();
    hangs_->publish(tx, {keyed("k", 1), keyed("k", 2)});
    tx.commit();
  }
  ASSERT_TRUE(gate_.entered.await());
  requeue_the_first();
  EXPECT_EQ(other_->poll(), 0U) << "the other node may go on with its key until its lease ends";
  gate_.open.set();
  ASSERT_TRUE(by_hanging_.await(2));
  hangs_->stop();
  EXPECT_EQ(metrics_.get(Counter::stale_completions), 2U);
  EXPECT_EQ(payloads(by_hanging_), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(counts().pending, 2);
  clock_.advance(31s);
  EXPECT_EQ(other_->poll(), 2U);
  ASSERT_TRUE(seen_.await(2));
  EXPECT_EQ(payloads(seen_), (std::vector<std::string>{"1", "2"})) << "again, and in order";
}

TEST_P(OutboxKeyRequeued, HoldsBackWhatComesBehindOnceTheNodeHasHeardOfIt) {
  open(true);
  start_hanging(without_poller());
  publish(*hangs_, keyed("k", 1));
  ASSERT_TRUE(gate_.entered.await());
  requeue_the_first();
  gate_.open.set();
  ASSERT_TRUE(metrics_.await(Counter::stale_completions, 1));
  publish(*hangs_, keyed("k", 2));
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2)) << "it is given back";
  hangs_->stop();
  EXPECT_EQ(payloads(by_hanging_), (std::vector<std::string>{"1"})) << "the first is pending again";
  EXPECT_EQ(counts().pending, 2);
  EXPECT_EQ(other_->poll(), 0U) << "the node's lease has not ended";
  clock_.advance(31s);
  EXPECT_EQ(other_->poll(), 2U);
  ASSERT_TRUE(seen_.await(2));
  EXPECT_EQ(payloads(seen_), (std::vector<std::string>{"1", "2"}));
}

POSTRIDER_FOR_EACH_BACKEND(OutboxOperating);
POSTRIDER_FOR_EACH_BACKEND(OutboxKeyRequeued);
POSTRIDER_FOR_EACH_BACKEND(OutboxCorrecting);

}  // namespace
}  // namespace postrider
