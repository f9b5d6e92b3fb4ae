// SPDX-License-Identifier: Apache-2.0
// The books must show every kind of fraud, or the crash tests prove nothing.
#include "support/balance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace postrider::test {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using What = Note::What;

/// Two orders of one key, delivered in order by process 1, the second one again by process 2 after 1 was
/// killed; one that died; one that was rolled back.
Facts honest() {
  Facts facts;
  facts.orders = {{EventId("a"), "k", 1, Fate::ok},
                  {EventId("b"), "k", 2, Fate::flaky},
                  {EventId("c"), "", 3, Fate::dead}};
  facts.notes = {{What::done, "a", 1, "k", 1, 10}, {What::failed, "b", 1, "k", 2, 20},
                 {What::done, "b", 1, "k", 2, 30}, {What::rolled_back, "r", 1, "", 4, 35},
                 {What::done, "b", 2, "k", 2, 40}, {What::dead, "c", 2, "", 3, 50}};
  facts.rows = {
      {"a", {EventStatus::done, 15}}, {"b", {EventStatus::done, 45}}, {"c", {EventStatus::dead, 55}}};
  facts.counts.done = 2;
  facts.counts.dead = 1;
  facts.killed = {1};
  facts.held_at_most = 4;
  return facts;
}

void expect_violation(const Facts& facts, const char* which) {
  EXPECT_THAT(add_up(facts).violations, Contains(StartsWith(which))) << add_up(facts).text();
}

TEST(Balance, HonestBooksAddUp) {
  const Balance balance = add_up(honest());
  EXPECT_THAT(balance.violations, IsEmpty()) << balance.text();
  EXPECT_EQ(balance.published, 3U);
  EXPECT_EQ(balance.rolled_back, 1U);
  EXPECT_EQ(balance.duplicates, 1U);
  EXPECT_EQ(balance.most_duplicates_of_one_kill, 1U);
}

TEST(Balance, ACommittedOrderThatIsNeverDelivered) {
  Facts facts = honest();
  facts.notes.erase(facts.notes.begin());
  expect_violation(facts, "A: committed, never delivered");
}

TEST(Balance, ACommittedOrderWithoutItsEvent) {
  Facts facts = honest();
  facts.rows.erase("a");
  expect_violation(facts, "A: the order is committed");
}

TEST(Balance, ARowThatEndedOtherwise) {
  Facts facts = honest();
  facts.rows["a"].status = EventStatus::dead;
  expect_violation(facts, "A: row a is DEAD");
}

TEST(Balance, ADeliveryAgainstItsFate) {
  Facts facts = honest();
  facts.notes.back().what = What::done;
  expect_violation(facts, "A: against its fate");
}

TEST(Balance, ARolledBackOneThatIsDelivered) {
  Facts facts = honest();
  facts.notes.push_back({What::done, "r", 2, "", 4, 60});
  expect_violation(facts, "B: delivered r");
}

TEST(Balance, AnUnknownOneThatIsDelivered) {
  Facts facts = honest();
  facts.notes.push_back({What::failed, "x", 2, "", 4, 60});
  expect_violation(facts, "B: delivered x");
}

TEST(Balance, ASecondDeliveryByTheSameProcess) {
  Facts facts = honest();
  facts.notes[4].generation = 1;
  expect_violation(facts, "C: delivered again by process 1");
}

TEST(Balance, ASecondDeliveryAfterAProcessThatWasNotKilled) {
  Facts facts = honest();
  facts.killed.clear();
  expect_violation(facts, "C: delivered again by process 2");
}

TEST(Balance, ADeliveryAfterDone) {
  Facts facts = honest();
  facts.notes.push_back({What::failed, "b", 2, "k", 2, 45 + 2'001});
  expect_violation(facts, "C: delivered 2001 us after");
}

TEST(Balance, MoreDuplicatesThanAProcessCanHold) {
  Facts facts = honest();
  facts.held_at_most = 1;
  facts.notes.push_back({What::done, "a", 2, "k", 1, 14});
  expect_violation(facts, "C: 2 deliveries of process 1 came again");
}

TEST(Balance, AKeyOutOfOrder) {
  Facts facts = honest();
  std::swap(facts.orders[0].number, facts.orders[1].number);
  expect_violation(facts, "D: key 'k'");
}

TEST(Balance, SomethingPending) {
  Facts facts = honest();
  facts.counts.pending = 1;
  expect_violation(facts, "H: 1 are pending");
}

TEST(Balance, PublishedIsNotDoneAndDead) {
  Facts facts = honest();
  facts.counts.done = 1;
  expect_violation(facts, "H: published 3, done and dead 2");
}

TEST(Balance, NotesSurviveTheirFile) {
  const std::string path = ::testing::TempDir() + "/balance_test_notes";
  std::remove(path.c_str());
  {
    const NoteFile file(path, 7);
    file.write(What::later, {EventId("e"), "", 3, Fate::later});
    file.write(What::done, {EventId("e"), "k/1", 3, Fate::later});
  }
  const std::vector<Note> notes = read_notes(path);
  std::remove(path.c_str());
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0].what, What::later);
  EXPECT_EQ(notes[0].key, "");
  EXPECT_EQ(notes[1].generation, 7);
  EXPECT_EQ(notes[1].key, "k/1");
  EXPECT_GT(notes[1].at, 0);
  EXPECT_THROW((void)parse_note("D only half a li"), std::invalid_argument);
}

}  // namespace
}  // namespace postrider::test
