// SPDX-License-Identifier: Apache-2.0
// What a user is promised, end to end, on each database.
#include <string_view>
#include <thread>
#include <vector>

#include "integration/outbox_fixture.hpp"
#include "postrider/error.hpp"
#include "support/speechless.hpp"

namespace postrider {
namespace {

enum class UserEvents { created, deleted };
constexpr std::string_view event_name(UserEvents event) {
  return event == UserEvents::created ? "UserCreated" : "UserDeleted";
}
enum class Aggregates { user };
constexpr std::string_view aggregate_name(Aggregates) {
  return "User";
}

class OutboxAcceptance : public OutboxTest {};

TEST_P(OutboxAcceptance, ARolledBackEventNeverWas) {
  open();
  Outbox outbox{*storage_, options()};
  start(outbox);
  EventId id;
  {
    auto tx = storage_->begin();
    id = outbox.publish(tx, event()).id();
    tx.rollback();
  }
  EXPECT_FALSE(row(id));
  outbox.stop();
  EXPECT_EQ(seen_.count(), 0U);
}

TEST_P(OutboxAcceptance, ACommittedEventTakesTheFastPath) {
  open();
  Outbox outbox{*storage_, options()};
  outbox.on("UserCreated", seen_);
  outbox.start();
  const EventId id = publish(outbox, event("UserCreated", R"({"name":"Ada"})"));
  ASSERT_TRUE(seen_.await(1));
  const auto received = seen_.received().front();
  EXPECT_EQ(received.event.id(), id);
  EXPECT_EQ(received.event.payload(), R"({"name":"Ada"})");
  EXPECT_EQ(received.delivery.source, Source::hot);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  EXPECT_EQ(status(id), EventStatus::done);
  EXPECT_TRUE(row(id)->done_at);
  EXPECT_EQ(row(id)->owner, "");
}

TEST_P(OutboxAcceptance, TheListenerGetsThePublishedPayloadWithoutACopy) {
  open();
  Outbox outbox{*storage_, options()};
  start(outbox);
  const Event published = Event::bytes("T", std::string(500'000, '\0'));
  publish(outbox, published);
  ASSERT_TRUE(seen_.await(1));
  EXPECT_EQ(seen_.events()[0].payload().data(), published.payload().data());
}

TEST_P(OutboxAcceptance, AFullHotQueueLeavesTheRowToThePoller) {
  open();
  OutboxOptions small = without_poller();
  small.hot_queue_capacity = 2;
  Outbox outbox{*storage_, small};
  start(outbox);
  std::vector<Event> events;
  for (int i = 0; i < 5; ++i) events.push_back(event());
  {
    auto tx = storage_->begin();
    const Staged staged = outbox.publish(tx, events);
    EXPECT_EQ(staged.ids().size(), 5U);
    tx.commit();
  }
  EXPECT_EQ(metrics_.get(Counter::hot_dropped), 3U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(status(events[static_cast<std::size_t>(i)].id()), EventStatus::done);
  for (std::size_t i = 2; i < 5; ++i) EXPECT_EQ(status(events[i].id()), EventStatus::fresh);

  EXPECT_EQ(outbox.poll(), 3U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 5));
  for (const Event& one : events) EXPECT_EQ(status(one.id()), EventStatus::done);
  EXPECT_EQ(seen_.received().back().delivery.source, Source::cold);
  EXPECT_EQ(metrics_.hot_depth(), 0U) << "not what was queued last";
  EXPECT_EQ(metrics_.cold_depth(), 0U);
}

TEST_P(OutboxAcceptance, OverflowIsBroughtByThePollerAtOnce) {
  open();
  OutboxOptions small = options();
  small.hot_queue_capacity = 1;
  small.poller_interval = 1h;
  Outbox outbox{*storage_, small};
  start(outbox);
  std::vector<Event> events;
  for (int i = 0; i < 50; ++i) events.push_back(event());
  auto tx = storage_->begin();
  outbox.publish(tx, events);
  tx.commit();
  ASSERT_TRUE(seen_.await(50));
  EXPECT_EQ(times(seen_).size(), 50U);
}

TEST_P(OutboxAcceptance, AFailingEventIsRetriedThenDead) {
  open(true);
  OutboxOptions patient = without_poller();
  patient.retry_max_attempts = 3;
  Outbox outbox{*storage_, patient};
  seen_.answer(Outcome::failed("the mail server is down"));
  start(outbox);
  const EventId id = publish(outbox, event());
  for (std::uint64_t attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_TRUE(metrics_.await(Counter::flushed_events, attempt));
    const OutboxRecord record = row(id).value();
    EXPECT_EQ(record.attempts, Attempt{static_cast<std::int32_t>(attempt)});
    EXPECT_EQ(record.last_error, "the mail server is down");
    EXPECT_EQ(record.status, attempt < 3 ? EventStatus::retry : EventStatus::dead);
    EXPECT_EQ(outbox.poll(), 0U) << "a retry must wait for its time";
    clock_.advance(90s);
    if (attempt < 3) {
      EXPECT_EQ(outbox.poll(), 1U);
    }
  }
  EXPECT_EQ(outbox.poll(), 0U) << "a dead event stays dead";
  EXPECT_EQ(seen_.count(), 3U);
  EXPECT_EQ(metrics_.get(Counter::dispatch_failure), 2U);
  EXPECT_EQ(metrics_.get(Counter::dispatch_dead), 1U);

  seen_.answer(Outcome::done());
  EXPECT_EQ(outbox.admin().replay_dead_letters({}, true), 1);
  EXPECT_EQ(status(id), EventStatus::dead) << "a dry run changes nothing";
  EXPECT_EQ(outbox.admin().replay_dead_letters({}), 1);
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 4));
  EXPECT_EQ(status(id), EventStatus::done);
}

TEST_P(OutboxAcceptance, ARetryComesWhenItIsDueNotWhenThePollerHappensToLook) {
  open();
  OutboxOptions lazy = options();
  lazy.poller_interval = 1h;
  lazy.retry_base_delay = 10ms;
  Outbox outbox{*storage_, lazy};
  seen_.fail_next(2);
  start(outbox);
  publish(outbox, event());
  ASSERT_TRUE(seen_.await(3));
}

TEST_P(OutboxAcceptance, AListenerByEnumHearsAnEventByEnum) {
  open();
  Outbox outbox{*storage_, options()};
  outbox.on(UserEvents::created, seen_);
  outbox.start();
  publish(outbox, Event::builder(UserEvents::created).aggregate(Aggregates::user, "7").json("{}").build());
  ASSERT_TRUE(seen_.await(1));
  EXPECT_EQ(seen_.events()[0].type(), "UserCreated");
  EXPECT_EQ(seen_.events()[0].aggregate_type(), "User");
}

TEST_P(OutboxAcceptance, EveryFieldReachesTheListenerOfTheColdPath) {
  open();
  Outbox publisher{*storage_, options()};  // not started: its rows are free for all
  const Event published = Event::builder("Grüße")
                              .aggregate("Straße", "42")
                              .tenant("mieter-😀")
                              .ordering_key("k1")
                              .header("trace", "a\"b\\c")
                              .header("empty", "")
                              .bytes(std::string("\0\1\xff", 3))
                              .build();
  publish(publisher, published);

  Outbox outbox{*storage_, options()};
  start(outbox);
  ASSERT_TRUE(seen_.await(1));
  const Event got = seen_.events()[0];
  EXPECT_EQ(got.id(), published.id());
  EXPECT_EQ(got.type(), "Grüße");
  EXPECT_EQ(got.aggregate_type(), "Straße");
  EXPECT_EQ(got.aggregate_id(), "42");
  EXPECT_EQ(got.tenant_id(), "mieter-😀");
  EXPECT_EQ(got.ordering_key(), "k1");
  EXPECT_EQ(got.headers(), published.headers());
  EXPECT_EQ(got.payload_kind(), PayloadKind::bytes);
  EXPECT_EQ(got.payload(), published.payload());
  EXPECT_EQ(got.occurred_at(), published.occurred_at());
}

TEST_P(OutboxAcceptance, PublishOutsideATransactionFailsAndSaysHowToOpenOne) {
  open();
  Outbox outbox{*storage_, options()};
  auto tx = storage_->begin();
  tx.commit();
  try {
    outbox.publish(tx, event());
    FAIL() << "published into an ended transaction";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_in_transaction);
    EXPECT_NE(std::string(error.what()).find("storage.begin()"), std::string::npos) << error.what();
  }
  try {
    outbox.publish(event());
    FAIL() << "published without any transaction";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_in_transaction);
    EXPECT_NE(std::string(error.what()).find("TxScope"), std::string::npos) << error.what();
  }
  auto open_tx = storage_->begin();
  EXPECT_THROW(outbox.publish(open_tx, std::span<const Event>{}), Error);
}

TEST_P(OutboxAcceptance, TheThreadsCurrentTransactionIsUsed) {
  open();
  Outbox outbox{*storage_, options()};
  start(outbox);
  {
    auto tx = storage_->begin();
    const TxScope scope{tx};
    outbox.publish(event());
    tx.commit();
  }
  EXPECT_EQ(TxContext::current(), nullptr);
  ASSERT_TRUE(seen_.await(1));
}

TEST_P(OutboxAcceptance, ADelayedEventWaitsForItsTime) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  start(outbox);
  publish(outbox, Event::builder("T").deliver_at(clock_.now() + 60s).json("{}").build());
  EXPECT_EQ(outbox.poll(), 0U);
  clock_.advance(59s);
  EXPECT_EQ(outbox.poll(), 0U);
  clock_.advance(2s);
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(seen_.await(1));
}

TEST_P(OutboxAcceptance, RetryAfterIsNotCounted) {
  open(true);
  OutboxOptions manual = without_poller();
  manual.retry_max_attempts = 1;
  Outbox outbox{*storage_, manual};
  seen_.answer_next(1, Outcome::retry_after(30s));
  start(outbox);
  const EventId id = publish(outbox, event());
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  EXPECT_EQ(row(id)->attempts, Attempt{0});
  EXPECT_EQ(outbox.poll(), 0U);
  clock_.advance(31s);
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));
  EXPECT_EQ(status(id), EventStatus::done);
}

TEST_P(OutboxAcceptance, AnEventThatNobodyHearsIsNotForgotten) {
  open();
  Outbox outbox{*storage_, options()};
  outbox.on("Other", seen_);
  outbox.start();
  const EventId id = publish(outbox, event("Unheard"));
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  EXPECT_EQ(status(id), EventStatus::retry);
  EXPECT_NE(row(id)->last_error.find("no listener is registered for event type 'Unheard'"),
            std::string::npos);
}

TEST_P(OutboxAcceptance, AnExceptionWithoutAMessageIsAFailedAttemptNotTheEnd) {
  open();
  Outbox outbox{*storage_, options()};
  outbox.on_all([](const Event&) { throw test::Speechless{}; });
  outbox.start();
  const EventId id = publish(outbox, event());
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 1));
  EXPECT_EQ(status(id), EventStatus::retry);
  EXPECT_EQ(row(id)->last_error, "an exception without a message");
}

TEST_P(OutboxAcceptance, InlineDispatchRunsInsideTheCommit) {
  open();
  OutboxOptions inline_options = options();
  inline_options.inline_dispatch = true;
  Outbox outbox{*storage_, inline_options};
  seen_.fail_next(1);
  start(outbox);
  const EventId first = publish(outbox, event());
  EXPECT_EQ(seen_.count(), 1U);
  EXPECT_EQ(status(first), EventStatus::retry);
  const EventId second = publish(outbox, event());
  EXPECT_EQ(seen_.count(), 2U);
  EXPECT_EQ(status(second), EventStatus::done);
}

TEST_P(OutboxAcceptance, StartsAndStopsInAnyOrderAnyNumberOfTimes) {
  open();
  Outbox outbox{*storage_, options()};
  outbox.on_all(seen_);
  outbox.stop();
  for (std::size_t round = 1; round <= 3; ++round) {
    outbox.start();
    outbox.start();
    EXPECT_TRUE(outbox.running());
    publish(outbox, event());
    ASSERT_TRUE(seen_.await(round));
    outbox.stop();
    outbox.stop();
    EXPECT_FALSE(outbox.running());
    EXPECT_EQ(counts().pending, 0);
  }
}

TEST_P(OutboxAcceptance, ManyThreadsPublishAndEachEventIsDeliveredOnce) {
  open();
  Outbox outbox{*storage_, options()};
  start(outbox);
  constexpr int threads = 4;
  constexpr int each = 50;
  std::vector<std::thread> publishers;
  for (int t = 0; t < threads; ++t) {
    publishers.emplace_back([&] {
      for (int i = 0; i < each; ++i) publish(outbox, event());
    });
  }
  for (std::thread& publisher : publishers) publisher.join();
  ASSERT_TRUE(seen_.await(threads * each));
  outbox.stop();
  EXPECT_EQ(times(seen_).size(), static_cast<std::size_t>(threads * each));
  EXPECT_EQ(seen_.count(), static_cast<std::size_t>(threads * each));
  EXPECT_EQ(counts().pending, 0);
  EXPECT_EQ(counts().done, threads * each);
}

POSTRIDER_FOR_EACH_BACKEND(OutboxAcceptance);

}  // namespace
}  // namespace postrider
