// SPDX-License-Identifier: Apache-2.0
// Parts of the sink that need no server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/error.hpp"
#include "publishers/nats/ack.hpp"
#include "publishers/nats/batch.hpp"
#include "publishers/nats/settings.hpp"
#include "publishers/nats/subject.hpp"

namespace postrider::nats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = PublishResult::Kind;

/// Messages with these keys.
class NatsBatch : public ::testing::Test {
 protected:
  static Batch batch(const std::vector<std::string>& keys, std::size_t most_bytes = 1'000) {
    std::vector<SinkMessage> all;
    for (const std::string& key : keys) all.push_back({.key = key});
    return {all, most_bytes};
  }
  /// Sends all that may go, 10 bytes each.
  static std::vector<std::size_t> go(Batch& batch) {
    std::vector<std::size_t> gone;
    while (const auto index = batch.next()) {
      batch.sent(*index, 10);
      gone.push_back(*index);
    }
    return gone;
  }
};

TEST_F(NatsBatch, OneOfEachKeyIsOnItsWay) {
  Batch some = batch({"a", "b", "a", "", "", "a"});
  EXPECT_THAT(go(some), ElementsAre(0, 1, 3, 4));
  some.stored(1);
  EXPECT_THAT(go(some), IsEmpty());
  some.stored(0);
  EXPECT_EQ(some.first_open(), 2U);
  EXPECT_THAT(go(some), ElementsAre(2));
  some.stored(2);
  some.stored(2);
  EXPECT_THAT(go(some), ElementsAre(5));
  some.stored(5);
  some.stored(4);
  EXPECT_FALSE(some.settled());
  some.stored(3);
  EXPECT_TRUE(some.settled());
  EXPECT_EQ(some.result().kind(), Kind::all);
}

TEST_F(NatsBatch, BehindAFailureNothingGoesAndWhatIsBeforeItDoes) {
  Batch some = batch({"a", "a", "b", "", "b"}, 1);
  EXPECT_THAT(go(some), ElementsAre(0)) << "one, however large";
  some.stored(0);
  EXPECT_THAT(go(some), ElementsAre(2));
  some.failed(2, true, "too large");
  EXPECT_FALSE(some.settled()) << "1 stands before it";
  EXPECT_THAT(go(some), ElementsAre(1));
  some.stored(1);
  EXPECT_TRUE(some.settled());
  EXPECT_EQ(some.result().kind(), Kind::refused);
  EXPECT_EQ(some.result().count(5), 2U);
}

TEST_F(NatsBatch, TheFirstFailureDecides) {
  Batch some = batch({"", "", ""});
  go(some);
  some.failed(2, true, "too large");
  some.failed(1, false, "full");
  some.failed(2, true, "again");
  some.stored(0);
  ASSERT_TRUE(some.settled());
  EXPECT_EQ(some.result().kind(), Kind::unavailable);
  EXPECT_EQ(some.result().reason(), "full");
  EXPECT_EQ(some.result().count(3), 1U);
}

TEST_F(NatsBatch, WhoIsNotKnownToHaveFailedIsTheOneThatIsNotStored) {
  Batch some = batch({"", "", "", "a", "a"});
  EXPECT_THAT(go(some), ElementsAre(0, 1, 2, 3));
  some.one_failed("no stream");
  some.stored(3);
  EXPECT_THAT(go(some), IsEmpty());
  some.stored(0);
  EXPECT_FALSE(some.settled());
  some.stored(2);
  ASSERT_TRUE(some.settled());
  EXPECT_EQ(some.result().kind(), Kind::unavailable);
  EXPECT_EQ(some.result().count(5), 1U);
  EXPECT_EQ(some.result().reason(), "no stream");
}

TEST_F(NatsBatch, TheBytesOnTheirWayAreBounded) {
  Batch some = batch({"", "", "", "", ""}, 25);
  EXPECT_THAT(go(some), ElementsAre(0, 1, 2));
  some.stored(1);
  EXPECT_THAT(go(some), ElementsAre(3));
  some.failed(4, false, "never sent, yet refused by the library");
  some.stored(99);
  some.failed(99, true, "nobody");
  EXPECT_FALSE(some.settled());
}

TEST(NatsAck, IsRead) {
  EXPECT_TRUE(parse_ack(R"({"stream":"s","seq":7})", "s").stored);
  EXPECT_TRUE(parse_ack(R"({"stream":"s","seq":7,"duplicate": true})", "s").stored)
      << "a repeat is safe, too";
  EXPECT_FALSE(parse_ack(R"({"stream":"t","seq":7})", "s").stored);
  const Ack full = parse_ack(
      R"({"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"s","seq":0})",
      "s");
  EXPECT_FALSE(full.stored || full.of_the_event);
  EXPECT_THAT(full.reason, HasSubstr("the stream is full: 'maximum bytes exceeded' (10077)"));
  EXPECT_TRUE(refusal_of(10054, "message size exceeds maximum allowed").of_the_event);
  EXPECT_THAT(refusal_of(10047, "insufficient storage resources available").reason, HasSubstr("full"));
  EXPECT_FALSE(refusal_of(10008, "JetStream system temporarily unavailable").of_the_event);
}

TEST(NatsAck, NonsenseIsNoAck) {
  for (const char* text :
       {"", "{", "7", "null", "[]", "{}", R"({"stream":"s"})", R"({"seq":1})", R"({"stream":7,"seq":1})",
        R"({"error":null,"stream":"s","seq":1})", R"({"error":{},"stream":"s","seq":1})",
        R"({"error":{"err_code":"x"}})", R"({"error":{"err_code":1e99}})", "\xff"}) {
    EXPECT_FALSE(parse_ack(text, "s").stored) << text;
    EXPECT_FALSE(parse_ack(text, "s").of_the_event) << text;
  }
  EXPECT_LT(parse_ack(std::string(100'000, 'x'), "s").reason.size(), 300U) << "bounded";
}

TEST(NatsUrl, IsRead) {
  const Settings whole = parse_url("nats://me:p%40ss@one:1,tls://two,nats://[::1]:3");
  EXPECT_THAT(whole.servers, ElementsAre("nats://one:1", "tls://two:4222", "nats://[::1]:3"));
  EXPECT_EQ(whole.username, "me");
  EXPECT_EQ(whole.password, "p@ss");
  EXPECT_TRUE(whole.tls);
  EXPECT_EQ(whole.place(), "nats://one:1, …");
  const Settings token = parse_url("nats://t%20n@host/");
  EXPECT_EQ(token.token, "t n");
  EXPECT_FALSE(token.tls);
}

TEST(NatsUrl, IsRefusedWithoutTellingIt) {
  for (const char* url :
       {"", "h3lo", "redis://h3lo@host", "nats:h3lo", "nats://h3lo@", "nats://h3lo@host:0",
        "nats://h3lo@host:66000", "nats://h3lo@host:12x", "nats://h3lo@host/x", "nats://h3lo@host?x=1",
        "nats://one,nats://h3lo@two", "nats://one,", "nats://h3 lo@host"}) {
    try {
      (void)parse_url(url);
      ADD_FAILURE() << "accepted: " << url;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), Not(HasSubstr("h3lo")));
    }
  }
}

TEST(NatsSubject, IsCheckedAndWritten) {
  const OptionCheck check("NatsSinkOptions");
  for (const char* good : {"a", "a.b", "shop.{topic}.{type}", "a.x-{type}", "ü.b"}) {
    EXPECT_NO_THROW(check_subject(check, good)) << good;
  }
  for (const char* bad :
       {".a", "a.", "a..b", "a b", "a.*", "a.>", "a\n", "$JS.API", "_INBOX.x", "{topic}", "x{type}.a"}) {
    EXPECT_THROW(check_subject(check, bad), Error) << bad;
  }
  for (const char* bad : {"", "a.b", "a b", "*", "a/b", "a\\b"})
    EXPECT_THROW(check_stream(check, bad), Error) << bad;
  EXPECT_THROW(check_stream(check, std::string(256, 'x')), Error);
  EXPECT_EQ(subjects_of("shop.{topic}.x-{type}.end"), "shop.*.*.end");
  EXPECT_EQ(subjects_of("one"), "one");
  std::string out = "p.";
  append_token(out, "a.b c*>\t\x7fü");
  EXPECT_EQ(out, "p.a_b_c____ü");
}

}  // namespace
}  // namespace postrider::nats
