// SPDX-License-Identifier: Apache-2.0
#include "outbox/in_flight_copies.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "storage/next_token.hpp"

namespace postrider {
namespace {

using Kind = Completion::Kind;

/// The steps of one row, `a`: what the poller, the publisher and the completer would tell.
class InFlightCopiesTest : public ::testing::Test {
 protected:
  static OutboxItem event(std::int64_t token, Source source, const std::string& payload = "{}") {
    OutboxItem queued;
    queued.event = Event::builder("T").id(a).occurred_at(TimePoint{}).json(payload).build();
    queued.token = Token{token};
    queued.source = source;
    queued.lease_end = SteadyPoint{} + std::chrono::seconds{token};
    queued.bytes = 10 + payload.size();
    return queued;
  }
  static Completion result(Kind kind, std::int64_t token) {
    return {LeaseRef{a, Token{token}}, kind, Attempt{3}, std::chrono::seconds{7}, "why"};
  }

  InFlightCopies::Arrival claimed(std::int64_t token) { return copies_.arrive(event(token, Source::cold)); }
  InFlightCopies::Arrival committed(std::int64_t token) { return copies_.arrive(event(token, Source::hot)); }
  InFlightCopies::Ended written(Kind kind, std::int64_t token) { return copies_.ended(result(kind, token)); }

  /// The token of the claim that follows a replay of a dead letter.
  static std::int64_t replayed(std::int64_t token) {
    return static_cast<std::int64_t>(next_token(static_cast<std::int64_t>(next_life(Token{token}))));
  }

  void expect_queued(const InFlightCopies::Arrival& arrival, std::int64_t token) {
    EXPECT_TRUE(arrival.queue);
    EXPECT_FALSE(arrival.write_again);
    expect_held_under(token);
  }
  static void expect_kept_back(const InFlightCopies::Arrival& arrival) {
    EXPECT_FALSE(arrival.queue);
    EXPECT_FALSE(arrival.write_again);
  }
  static void expect_over(const InFlightCopies::Ended& ended) {
    EXPECT_FALSE(ended.write_again);
    EXPECT_FALSE(ended.requeue);
  }
  /// The same result in all but the token.
  static void expect_rewritten(const std::optional<Completion>& again, Kind kind, std::int64_t token) {
    ASSERT_TRUE(again);
    EXPECT_EQ(again->lease.id, a);
    EXPECT_EQ(again->lease.token, Token{token});
    EXPECT_EQ(again->kind, kind);
    EXPECT_EQ(again->failed, Attempt{3});
    EXPECT_EQ(again->delay, std::chrono::seconds{7});
    EXPECT_EQ(again->error, "why");
  }
  /// The copy that waited, to be queued; until it is, nobody holds the event.
  void expect_requeued(const InFlightCopies::Ended& ended, std::int64_t token) {
    EXPECT_FALSE(ended.write_again);
    ASSERT_TRUE(ended.requeue);
    EXPECT_EQ(ended.requeue->token, Token{token});
    ended_payload_ = ended.requeue->event->payload();
    EXPECT_FALSE(in_flight_.contains(a));
    expect_queued(copies_.arrive(*ended.requeue), token);
  }
  void expect_held_under(std::int64_t token) {
    const auto hold = in_flight_.find(a);
    ASSERT_TRUE(hold);
    EXPECT_EQ(hold->token, token);
    EXPECT_EQ(hold->lease_end, SteadyPoint{} + std::chrono::seconds{token});
  }

  void expect_lost_under(std::int64_t token) {
    expect_held_under(token);
    EXPECT_TRUE(in_flight_.find(a)->lost);
  }

  void expect_bytes(std::size_t hot, std::size_t cold) {
    EXPECT_EQ(copies_.bytes(Source::hot), hot);
    EXPECT_EQ(copies_.bytes(Source::cold), cold);
  }

  inline static const EventId a{"a"};
  std::string ended_payload_;
  ManualClock clock_;
  InFlightTracker in_flight_{clock_};
  InFlightCopies copies_{in_flight_};
};

TEST_F(InFlightCopiesTest, AnEventIsHeldFromItsArrivalUntilItsResultIsWritten) {
  expect_queued(committed(1), 1);
  expect_over(written(Kind::done, 1));
  EXPECT_EQ(in_flight_.size(), 0U);
  expect_queued(claimed(2), 2);
}

TEST_F(InFlightCopiesTest, EveryKindOfResultLetsTheEventGo) {
  for (const Kind kind : {Kind::done, Kind::dead, Kind::retry, Kind::later, Kind::release}) {
    expect_queued(claimed(1), 1);
    expect_over(written(kind, 1));
    EXPECT_EQ(in_flight_.size(), 0U);
  }
}

TEST_F(InFlightCopiesTest, EventsDoNotWaitForEachOther) {
  copies_.claim_begins();
  expect_queued(claimed(1), 1);
  OutboxItem other = event(1, Source::cold);
  other.event = Event::builder("T").id(EventId{"b"}).json("{}").build();
  EXPECT_TRUE(copies_.arrive(other).queue);
  expect_kept_back(claimed(2));
  expect_over(copies_.ended({LeaseRef{EventId{"b"}, Token{1}}, Kind::done, {}, {}, {}}));
  expect_rewritten(written(Kind::done, 1).write_again, Kind::done, 2);
}

// A claim that was faster than the publisher's callback, because the transaction outlasted the lease.

TEST_F(InFlightCopiesTest, ACommittedEventThatAClaimHasBroughtIsNotRunTwice) {
  expect_queued(claimed(2), 2);
  expect_kept_back(committed(1));
  expect_held_under(2);
  expect_over(written(Kind::retry, 2));
  EXPECT_EQ(in_flight_.size(), 0U) << "the late twin must not have waited for its turn";
}

TEST_F(InFlightCopiesTest, ACommittedEventDoesNotUseUpAResultThatTheClaimMayHaveMissed) {
  expect_queued(claimed(2), 2);
  copies_.claim_begins();
  expect_over(written(Kind::done, 2));
  expect_kept_back(committed(1));
  expect_rewritten(claimed(3).write_again, Kind::done, 3);
}

// A second copy that waits for the first to end.

TEST_F(InFlightCopiesTest, TheRunningCopyGoesOnUnderTheNewerClaim) {
  expect_queued(claimed(1), 1);
  expect_kept_back(claimed(2));
  expect_held_under(2);
}

TEST_F(InFlightCopiesTest, ACopyIsDroppedWhenTheResultWasWrittenUnderItsOwnClaim) {
  expect_queued(claimed(1), 1);
  expect_kept_back(claimed(2));
  expect_over(written(Kind::retry, 2));
  EXPECT_EQ(in_flight_.size(), 0U);

  expect_queued(claimed(3), 3);
  expect_over(written(Kind::release, 1));  // nothing is left of the copy that even an old token would find
}

TEST_F(InFlightCopiesTest, AResultThatWasTooLateForTheClaimIsWrittenAgainInsteadOfASecondDelivery) {
  for (const Kind kind : {Kind::done, Kind::dead}) {
    expect_queued(claimed(1), 1);
    expect_kept_back(claimed(2));
    const InFlightCopies::Ended ended = written(kind, 1);
    expect_rewritten(ended.write_again, kind, 2);
    EXPECT_FALSE(ended.requeue);
    EXPECT_TRUE(in_flight_.contains(a)) << "not before it is written";
    expect_over(written(kind, 2));
    EXPECT_EQ(in_flight_.size(), 0U);
  }
}

TEST_F(InFlightCopiesTest, ARewrittenResultThatIsTooLateAgainFollowsTheRowFurther) {
  expect_queued(claimed(1), 1);
  expect_kept_back(claimed(2));
  expect_rewritten(written(Kind::done, 1).write_again, Kind::done, 2);
  expect_kept_back(claimed(3));
  expect_rewritten(written(Kind::done, 2).write_again, Kind::done, 3);
  expect_over(written(Kind::done, 3));
  EXPECT_EQ(in_flight_.size(), 0U);
}

TEST_F(InFlightCopiesTest, ARetryThatWasDueBeforeItsResultWasHeardOfIsNotStranded) {
  for (const Kind kind : {Kind::retry, Kind::later, Kind::release}) {
    expect_queued(claimed(1), 1);
    expect_kept_back(claimed(2));
    expect_requeued(written(kind, 1), 2);
    expect_over(written(Kind::done, 2));
  }
}

/// An ordered copy is not queued but goes back, and is held no longer. The next claim may come before the
/// word that it is back: ended by that word, its event would be dropped, and its row leased to nobody's
/// memory.
TEST_F(InFlightCopiesTest, ACopyThatWentBackDoesNotEndTheClaimThatFollowed) {
  expect_queued(claimed(3), 3);
  expect_kept_back(claimed(4));
  EXPECT_TRUE(written(Kind::release, 3).requeue);
  expect_queued(claimed(5), 5);
  expect_over(written(Kind::release, 4));
  expect_held_under(5);
  expect_over(written(Kind::done, 5));
  expect_queued(claimed(6), 6);
}

TEST_F(InFlightCopiesTest, AReplayInBetweenIsNotTakenForTheOldDeath) {
  for (const Kind kind : {Kind::done, Kind::dead}) {
    expect_queued(claimed(1), 1);
    expect_kept_back(claimed(3));  // the replay made it 2
    expect_requeued(written(kind, 1), 3);
    expect_over(written(Kind::done, 3));
  }
}

TEST_F(InFlightCopiesTest, OfSeveralCopiesTheNewestCounts) {
  expect_queued(claimed(1), 1);
  expect_kept_back(claimed(2));
  expect_kept_back(claimed(3));
  expect_requeued(written(Kind::retry, 1), 3);
  expect_over(written(Kind::done, 3));
  EXPECT_EQ(in_flight_.size(), 0U);
}

// Another life of a row whose old one is still queued or in a listener.

TEST_F(InFlightCopiesTest, AReplayedEventIsNotEndedByTheRunOfItsOldLife) {
  for (const Kind kind : {Kind::done, Kind::dead, Kind::retry, Kind::later, Kind::release}) {
    expect_queued(claimed(1), 1);
    expect_kept_back(claimed(replayed(2)));  // the cancellation made it 2
    expect_lost_under(1);
    expect_requeued(written(kind, 1), replayed(2));
    expect_over(written(Kind::done, replayed(2)));
    EXPECT_EQ(in_flight_.size(), 0U);
  }
}

TEST_F(InFlightCopiesTest, ARequeuedEventIsEndedByTheRunThatThereIs) {
  expect_queued(claimed(1), 1);
  expect_kept_back(claimed(3));  // the requeue made it 2
  expect_held_under(3);
  EXPECT_FALSE(in_flight_.find(a)->lost);
  expect_over(written(Kind::done, 3));
  EXPECT_EQ(in_flight_.size(), 0U);
}

TEST_F(InFlightCopiesTest, AnEventOfAnotherContentIsNotEndedByTheRunOfTheOldOne) {
  expect_queued(claimed(1), 1);
  expect_kept_back(copies_.arrive(event(2, Source::cold, "[1]")));
  expect_lost_under(1);
  expect_requeued(written(Kind::done, 1), 2);
  EXPECT_EQ(ended_payload_, "[1]");
}

TEST_F(InFlightCopiesTest, AnIdThatWasPurgedAndPublishedAgainIsNotEndedByTheRunOfTheFirst) {
  for (const Source source : {Source::hot, Source::cold}) {
    for (const std::int64_t first : {2, 5}) {
      expect_queued(claimed(first), first);
      const bool known_by_content = source == Source::hot && first > 2;
      expect_kept_back(copies_.arrive(event(2, source, known_by_content ? "[1]" : "{}")));
      expect_lost_under(first);
      expect_requeued(written(Kind::done, first), 2);
      expect_over(written(Kind::done, 2));
    }
  }
}

TEST_F(InFlightCopiesTest, WhatIsLostStaysLostAndTheNewestLifeFollows) {
  expect_queued(claimed(1), 1);
  expect_kept_back(claimed(replayed(1)));
  expect_kept_back(claimed(2));  // had been claimed before the replay
  expect_lost_under(1);
  expect_kept_back(claimed(replayed(1) + 1));  // its lease ran out while it waited
  expect_requeued(written(Kind::done, 1), replayed(1) + 1);
}

TEST_F(InFlightCopiesTest, ACommittedEventDoesNotReplaceAClaimOfItselfThatWaits) {
  expect_queued(claimed(1), 1);
  expect_kept_back(copies_.arrive(event(2, Source::cold, "[1]")));
  expect_kept_back(copies_.arrive(event(1, Source::hot, "[1]")));
  expect_requeued(written(Kind::done, 1), 2);

  expect_kept_back(copies_.arrive(event(3, Source::cold, "[1]")));
  expect_kept_back(copies_.arrive(event(1, Source::hot, "[2]")));
  expect_requeued(written(Kind::done, 3), 1);
  EXPECT_EQ(ended_payload_, "[2]");
}

// A row that ended while the claim that returned it was under way.

TEST_F(InFlightCopiesTest, ARowThatEndedWhileItWasClaimedIsWrittenAgainAndNotRunAgain) {
  for (const Kind kind : {Kind::done, Kind::dead}) {
    expect_queued(claimed(1), 1);
    copies_.claim_begins();
    expect_over(written(kind, 1));  // stale: the claim has the row
    EXPECT_TRUE(in_flight_.contains(a)) << "else the claim's copy would be run";
    const InFlightCopies::Arrival arrival = claimed(2);
    EXPECT_FALSE(arrival.queue);
    expect_rewritten(arrival.write_again, kind, 2);
    EXPECT_TRUE(in_flight_.contains(a)) << "not before it is written";
    copies_.claim_ends();
    EXPECT_TRUE(in_flight_.contains(a)) << "the end of the claim is not the result's";
    expect_over(written(kind, 2));
    EXPECT_EQ(in_flight_.size(), 0U);
  }
}

TEST_F(InFlightCopiesTest, AReplayThatIsClaimedWhileTheDeathIsWrittenIsRun) {
  expect_queued(claimed(1), 1);
  copies_.claim_begins();
  expect_over(written(Kind::dead, 1));
  expect_queued(claimed(3), 3);  // the replay made it 2
  copies_.claim_ends();
  expect_held_under(3);
  expect_over(written(Kind::done, 3));
  EXPECT_EQ(in_flight_.size(), 0U);
}

TEST_F(InFlightCopiesTest, AnotherLifeThatIsCommittedWhileTheEndOfTheFirstIsWrittenIsRun) {
  expect_queued(claimed(1), 1);
  copies_.claim_begins();
  expect_over(written(Kind::dead, 1));
  expect_queued(copies_.arrive(event(1, Source::hot, "[1]")), 1);
  copies_.claim_ends();
  expect_held_under(1);
}

TEST_F(InFlightCopiesTest, ARetryThatIsClaimedWhileItsResultIsWrittenIsRun) {
  for (const Kind kind : {Kind::retry, Kind::later, Kind::release}) {
    expect_queued(claimed(1), 1);
    copies_.claim_begins();
    expect_over(written(kind, 1));
    EXPECT_FALSE(in_flight_.contains(a));
    expect_queued(claimed(2), 2);
    copies_.claim_ends();
    expect_over(written(Kind::done, 2));
  }
}

TEST_F(InFlightCopiesTest, ARewrittenResultThatEndsInTheSameClaimIsForgottenWithIt) {
  expect_queued(claimed(1), 1);
  copies_.claim_begins();
  expect_over(written(Kind::done, 1));
  expect_rewritten(claimed(2).write_again, Kind::done, 2);
  expect_over(written(Kind::done, 2));
  copies_.claim_ends();
  EXPECT_EQ(in_flight_.size(), 0U);
}

TEST_F(InFlightCopiesTest, AnEventThatTheClaimDidNotReturnIsLetGoWithTheClaim) {
  expect_queued(claimed(1), 1);
  copies_.claim_begins();
  expect_over(written(Kind::done, 1));
  copies_.claim_ends();
  EXPECT_EQ(in_flight_.size(), 0U);

  // The next claim's window knows nothing of it.
  copies_.claim_begins();
  expect_queued(claimed(2), 2);
  copies_.claim_ends();
  expect_held_under(2);
}

TEST_F(InFlightCopiesTest, AnEventThatEndsAfterTheClaimIsLetGoAtOnce) {
  expect_queued(claimed(1), 1);
  copies_.claim_begins();
  copies_.claim_ends();
  expect_over(written(Kind::done, 1));
  EXPECT_EQ(in_flight_.size(), 0U);
}

// Both at once: the copy has arrived, and the claim that brought it is not over.

TEST_F(InFlightCopiesTest, ACopyThatHasArrivedDecidesEvenDuringTheClaim) {
  expect_queued(claimed(1), 1);
  copies_.claim_begins();
  expect_kept_back(claimed(2));
  expect_rewritten(written(Kind::done, 1).write_again, Kind::done, 2);
  EXPECT_TRUE(in_flight_.contains(a));
  copies_.claim_ends();
  EXPECT_TRUE(in_flight_.contains(a)) << "the result is still to be written";
}

TEST_F(InFlightCopiesTest, AReplaysCopyIsQueuedDuringTheClaimAndOutlastsIt) {
  expect_queued(claimed(1), 1);
  copies_.claim_begins();
  expect_kept_back(claimed(3));
  expect_requeued(written(Kind::dead, 1), 3);
  copies_.claim_ends();
  expect_held_under(3);
}

// Bytes, each event of which has 12.

TEST_F(InFlightCopiesTest, AnEventCountsInBytesUntilItsResultIsWritten) {
  expect_queued(committed(1), 1);
  expect_bytes(12, 0);
  expect_over(written(Kind::done, 1));
  expect_bytes(0, 0);
  expect_queued(claimed(2), 2);
  expect_bytes(0, 12);
  copies_.let_go(a);
  copies_.let_go(a);
  expect_bytes(0, 0);
}

TEST_F(InFlightCopiesTest, ACopyThatWaitsCountsInBytesAsLongAsItIsHere) {
  expect_queued(committed(1), 1);
  expect_kept_back(claimed(2));
  expect_bytes(12, 12);
  expect_kept_back(claimed(3));
  expect_bytes(12, 12);
  expect_kept_back(copies_.arrive(event(4, Source::cold, "[100]")));
  expect_bytes(12, 15);
  expect_requeued(written(Kind::retry, 1), 4);
  expect_bytes(0, 15);
  expect_over(written(Kind::done, 4));
  expect_bytes(0, 0);
}

TEST_F(InFlightCopiesTest, ACopyThatIsNotKeptDoesNotCountInBytes) {
  expect_queued(claimed(2), 2);
  expect_kept_back(committed(1));
  expect_bytes(0, 12);
  expect_kept_back(claimed(3));
  expect_rewritten(written(Kind::done, 2).write_again, Kind::done, 3);
  expect_bytes(0, 12);
  expect_over(written(Kind::done, 3));
  expect_bytes(0, 0);
}

TEST_F(InFlightCopiesTest, WhatEndsDuringAClaimCountsInBytesUntilTheClaimHasEnded) {
  expect_queued(committed(1), 1);
  copies_.claim_begins();
  expect_over(written(Kind::done, 1));
  expect_bytes(12, 0);
  EXPECT_EQ(copies_.claim_ends().size(), 1U);
  expect_bytes(0, 0);

  expect_queued(committed(1), 1);
  copies_.claim_begins();
  expect_over(written(Kind::dead, 1));
  expect_queued(claimed(3), 3);  // a replay
  expect_bytes(0, 12);
  EXPECT_TRUE(copies_.claim_ends().empty());
  expect_over(written(Kind::done, 3));
  expect_bytes(0, 0);
}

}  // namespace
}  // namespace postrider
