// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "storage/log_store.hpp"
#include "support/queue_rows.hpp"

namespace postrider::conformance {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class LogVerbs : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend(), test::TestDatabase::Options{.clock = &clock_});
    rows_.emplace(*database_, clock_);
  }
  LogStore& log() { return database_->storage().log_store(); }
  static std::vector<std::int64_t> seqs(const LogPage& page) {
    std::vector<std::int64_t> result;
    for (const LogEntry& entry : page.entries) result.push_back(static_cast<std::int64_t>(entry.seq));
    return result;
  }
  std::vector<std::int64_t> read(std::int64_t after, std::size_t limit = 100, const LogFilter& filter = {}) {
    return seqs(log().read(LogSeq{after}, limit, filter));
  }

  ManualClock clock_;
  std::optional<test::TestDatabase> database_;
  std::optional<test::QueueRows> rows_;
};
POSTRIDER_FOR_EACH_BACKEND(LogVerbs);

TEST_P(LogVerbs, AnEmptyLogHasNothingToRead) {
  const LogPage page = log().read(LogSeq{7}, 10, {});
  EXPECT_THAT(page.entries, IsEmpty());
  EXPECT_EQ(page.scanned_to, LogSeq{7}) << "never backwards";
  EXPECT_EQ(log().head(), LogSeq{0});
  EXPECT_FALSE(log().find(QueueId{1}).has_value());
}

TEST_P(LogVerbs, ReadsInOrderOfSeqNotOfId) {
  rows_->log({.id = 30});
  rows_->log({.id = 10});
  rows_->log({.id = 20});
  EXPECT_THAT(read(0), ElementsAre(1, 2, 3));
  EXPECT_THAT(read(1), ElementsAre(2, 3));
  EXPECT_THAT(read(0, 2), ElementsAre(1, 2));
  EXPECT_EQ(log().read(LogSeq{0}, 2, {}).scanned_to, LogSeq{2});
  EXPECT_EQ(log().read(LogSeq{0}, 10, {}).entries[1].id, QueueId{10});
  EXPECT_EQ(log().head(), LogSeq{3});
}

TEST_P(LogVerbs, AnEmptyListMatchesNothingAndIsReadPast) {
  for (std::int64_t id = 1; id <= 3; ++id) rows_->log({.id = id});
  for (const LogFilter& nothing :
       {LogFilter{.types = std::vector<std::string>{}}, LogFilter{.statuses = std::vector<QueueStatus>{}}}) {
    const LogPage page = log().read(LogSeq{0}, 10, nothing);
    EXPECT_THAT(page.entries, IsEmpty());
    EXPECT_EQ(page.scanned_to, LogSeq{3});
  }
}

TEST_P(LogVerbs, GoesOnThroughGaps) {
  for (const std::int64_t seq : {5, 6, 90, 91}) rows_->log({.id = seq, .seq = seq});
  EXPECT_THAT(read(0, 3), ElementsAre(5, 6, 90));
  EXPECT_THAT(read(50, 3), ElementsAre(90, 91));
  EXPECT_EQ(log().head(), LogSeq{91});
}

TEST_P(LogVerbs, AnEntryIsAsItWasPublished) {
  const std::string json = "{ \"b\": 1.50,\n  \"a\": [ ], \"b\": \"\\u00e9 ü 🎯\" }";
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  rows_->log({.id = 1,
              .status = QueueStatus::completed_with_errors,
              .event_id = "first",
              .type = "Ordered",
              .tenant = "acme",
              .key = "k",
              .headers = R"({"h":"v"})",
              .payload = json,
              .attempts = 3,
              .finalized_at = clock_.now() + 5s,
              .results = R"([{"handler":"mail","result":2,"failed":1,"error":"no \"such\" host"}])"});
  rows_->log({.id = 2, .bytes = bytes});
  const LogPage page = log().read(LogSeq{0}, 10, {});
  ASSERT_EQ(page.entries.size(), 2U);
  const LogEntry& entry = page.entries[0];
  ASSERT_TRUE(entry.event.has_value()) << entry.decode_error;
  EXPECT_EQ(entry.event->payload(), json) << "spaces, order and doubled names included";
  EXPECT_EQ(entry.event->payload_kind(), PayloadKind::json);
  EXPECT_EQ(entry.event->id(), EventId("first"));
  EXPECT_EQ(entry.event->type(), "Ordered");
  EXPECT_EQ(entry.event->tenant_id(), "acme");
  EXPECT_EQ(entry.event->ordering_key(), "k");
  EXPECT_EQ(entry.event->headers().at("h"), "v");
  EXPECT_EQ(entry.event->occurred_at(), clock_.now());
  EXPECT_EQ(entry.status, QueueStatus::completed_with_errors);
  EXPECT_EQ(entry.attempts, 3);
  EXPECT_EQ(entry.created_at, clock_.now());
  EXPECT_EQ(entry.finalized_at, clock_.now() + 5s);
  EXPECT_THAT(entry.results, ElementsAre(HandlerResult{.handler = "mail",
                                                       .verdict = HandlerVerdict::unrecoverable_error,
                                                       .failed = Attempt{1},
                                                       .error = "no \"such\" host"}));
  ASSERT_TRUE(page.entries[1].event.has_value());
  EXPECT_EQ(page.entries[1].event->payload(), bytes);
  EXPECT_EQ(page.entries[1].event->payload_kind(), PayloadKind::bytes);
  EXPECT_EQ(log().find(QueueId{2}).value().seq, LogSeq{2});
}

TEST_P(LogVerbs, ARowThatIsNoEventDoesNotHoldUpTheOthers) {
  rows_->log({.id = 1, .headers = "[1]"});
  rows_->log({.id = 2});
  const LogPage page = log().read(LogSeq{0}, 10, {});
  ASSERT_EQ(page.entries.size(), 2U);
  EXPECT_FALSE(page.entries[0].event.has_value());
  EXPECT_THAT(page.entries[0].decode_error, Not(IsEmpty()));
  EXPECT_TRUE(page.entries[1].event.has_value());
}

TEST_P(LogVerbs, FiltersByStatusAndTypeAndTellsHowFarItLooked) {
  rows_->log({.id = 1, .type = "A"});
  rows_->log({.id = 2, .status = QueueStatus::failed, .type = "B"});
  rows_->log({.id = 3, .status = QueueStatus::completed_with_errors, .type = "A"});
  rows_->log({.id = 4, .type = "a"});
  EXPECT_THAT(read(0, 10, {.types = {"A"}}), ElementsAre(1, 3)) << "case counts";
  EXPECT_THAT(read(0, 10, {.types = {"A", "B"}}), ElementsAre(1, 2, 3));
  EXPECT_THAT(read(0, 10, {.statuses = {QueueStatus::failed, QueueStatus::completed_with_errors}}),
              ElementsAre(2, 3));
  EXPECT_THAT(read(0, 10, {.statuses = {QueueStatus::completed}, .types = {"A"}}), ElementsAre(1));
  EXPECT_EQ(log().read(LogSeq{0}, 10, {.types = {"A"}}).scanned_to, LogSeq{4})
      << "the rest was looked at too";
  EXPECT_EQ(log().read(LogSeq{0}, 2, {.types = {"A"}}).scanned_to, LogSeq{3}) << "full: not beyond its last";
  EXPECT_EQ(log().read(LogSeq{0}, 10, {.types = {"none"}}).scanned_to, LogSeq{4});
  EXPECT_EQ(log().read(LogSeq{4}, 10, {.types = {"none"}}).scanned_to, LogSeq{4});
}

TEST_P(LogVerbs, ReadsBackFromTheNewestDownToTheFirst) {
  for (const std::int64_t seq : {5, 6, 90, 91}) {
    rows_->log({.id = seq, .seq = seq, .type = seq < 90 ? "A" : "B"});
  }
  const auto back = [&](std::int64_t before, std::size_t limit, const LogFilter& filter = {}) {
    return log().read_back(LogSeq{before}, limit, filter);
  };
  const std::int64_t top = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(seqs(back(top, 3)), ElementsAre(91, 90, 6));
  EXPECT_EQ(back(top, 3).scanned_to, LogSeq{6});
  EXPECT_THAT(seqs(back(6, 3)), ElementsAre(5));
  EXPECT_EQ(back(6, 3).scanned_to, LogSeq{0});
  EXPECT_EQ(back(6, 1).scanned_to, LogSeq{0}) << "full, and nothing is below: what came first was purged";
  EXPECT_THAT(seqs(back(top, 1, {.types = {"A"}})), ElementsAre(6));
  EXPECT_EQ(back(top, 1, {.types = {"A"}}).scanned_to, LogSeq{6}) << "full: not beyond its last";
  EXPECT_THAT(seqs(back(90, 10, {.types = {"B"}})), IsEmpty());
  EXPECT_EQ(back(90, 10, {.types = {"B"}}).scanned_to, LogSeq{0}) << "the rest was looked at too";
  EXPECT_EQ(back(5, 10).scanned_to, LogSeq{0});
}

TEST_P(LogVerbs, FindsEntriesByTheEventsOwnIds) {
  rows_->log({.id = 1, .event_id = "a"});
  rows_->log({.id = 2, .event_id = "b"});
  rows_->log({.id = 3, .event_id = "a"});
  EXPECT_THAT(read(0, 10, {.event_ids = {EventId("a")}}), ElementsAre(1, 3)) << "published twice";
  EXPECT_THAT(read(0, 10, {.event_ids = {EventId("c")}}), IsEmpty());
}

TEST_P(LogVerbs, LargePayloadsMakeShortPagesWithoutHoles) {
  const std::string large = "\"" + std::string(400'000, 'x') + "\"";
  for (int id = 1; id <= 120; ++id) {
    rows_->log({.id = id, .payload = id <= 60 ? large : "1"});
  }
  std::vector<std::int64_t> all;
  std::size_t pages = 0;
  LogSeq at{};
  for (;;) {
    const LogPage page = log().read(at, 1000, {});
    if (page.scanned_to == at) break;
    at = page.scanned_to;
    ++pages;
    for (const std::int64_t seq : seqs(page)) all.push_back(seq);
  }
  EXPECT_GT(pages, 1U) << "24 MB are more than one page";
  ASSERT_EQ(all.size(), 120U);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i) + 1);
}

TEST_P(LogVerbs, MoreThanAChunkComesInOnePage) {
  Transaction tx = database_->storage().begin();
  for (int id = 1; id <= 1500; ++id) rows_->log(tx, {.id = id, .type = id % 2 == 0 ? "even" : "odd"});
  tx.commit();
  EXPECT_EQ(read(0, 1200).size(), 1200U);
  EXPECT_EQ(read(0, 1200).back(), 1200);
  const auto even = read(0, 700, {.types = {"even"}});
  ASSERT_EQ(even.size(), 700U);
  EXPECT_EQ(even.back(), 1400);
}

}  // namespace
}  // namespace postrider::conformance
