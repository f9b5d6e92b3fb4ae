// SPDX-License-Identifier: Apache-2.0
#include "app/api/relay_api.hpp"

#include "app/api/api_fixture.hpp"
#include "postrider/event_store.hpp"
#include "storage/lease_store.hpp"
#include "storage/progress_store.hpp"

namespace postrider::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RelayApiTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    storage().progress_store().add(std::vector<NewPair>{{{"wallets", "kafka"}, Position{0}},
                                                        {{"payments", "kafka"}, Position{0}},
                                                        {{"wallets", "hooks"}, Position{1}}});
    EventStore store(storage());
    store.append({AppendEvent::builder("T"), AppendEvent::builder("T"), AppendEvent::builder("T")});
    use(relay_routes([] { return nullptr; }));
  }
  static std::string pair(const std::string& verb = {}) {
    return "/api/topics/wallets/publishers/kafka" + (verb.empty() ? "" : "/" + verb);
  }
};
POSTRIDER_FOR_EACH_BACKEND(RelayApiTest);

TEST_P(RelayApiTest, PublishersStandAsTheWorstOfTheirPairs) {
  EXPECT_THAT(each(get("/api/outbox/publishers"), "publishers", "name"), ElementsAre("hooks", "kafka"));
  post(pair("pause"));
  const json::object kafka = get("/api/outbox/publishers/kafka");
  EXPECT_EQ(kafka.at("status"), "PAUSED");
  EXPECT_EQ(kafka.at("lagEvents"), 3);
  EXPECT_EQ(kafka.at("pairs").as_array().size(), 2U);
}

TEST_P(RelayApiTest, PairsTellTheirLag) {
  EXPECT_THAT(each(get("/api/topics"), "pairs", "topic"), ElementsAre("payments", "wallets", "wallets"));
  EXPECT_THAT(each(get("/api/outbox/publishers/lag"), "pairs", "lagEvents"), ElementsAre("3", "2", "3"));
  EXPECT_EQ(get(pair("lag")).at("lagEvents"), 3);
  const json::object one = get(pair());
  const json::object status = get(pair("status"));
  EXPECT_EQ(status.at("topic"), "wallets");
  EXPECT_EQ(status.at("publisher"), "kafka");
  EXPECT_EQ(status.size(), one.size()) << "the same under both names";
  EXPECT_EQ(one.at("head"), 3);
  EXPECT_EQ(one.at("lastPosition"), 0);
  EXPECT_EQ(one.at("lastError"), nullptr);
  EXPECT_EQ(one.at("leader"), nullptr);
}

TEST_P(RelayApiTest, LeadersAndBackoff) {
  EXPECT_THAT(each(get("/api/outbox/publishers/leaders"), "leaders", "node"), IsEmpty());
  ASSERT_TRUE(storage().lease_store().acquire("leader", "n1", 10s, false, {}));
  EXPECT_THAT(each(get("/api/outbox/publishers/leaders"), "leaders", "node"), ElementsAre("n1"));
  EXPECT_THAT(each(get("/api/outbox/publishers/backoff"), "pairs", "ledHere"),
              ElementsAre("false", "false", "false"));
}

TEST_P(RelayApiTest, VerbsChangeWhatTheyNameAndAreAudited) {
  EXPECT_THAT(each(post("/api/outbox/publishers/kafka/pause"), "pairs", "status"),
              ElementsAre("PAUSED", "PAUSED"));
  EXPECT_EQ(get("/api/topics/wallets/publishers/hooks").at("status"), "ACTIVE");
  EXPECT_THAT(each(post(pair("reset")), "pairs", "status"), ElementsAre("PAUSED"));
  EXPECT_THAT(each(post(pair("resume")), "pairs", "status"), ElementsAre("ACTIVE"));
  EXPECT_THAT(each(post(pair("rewind"), R"({"position":2})"), "pairs", "lastPosition"), ElementsAre("2"));
  EXPECT_THAT(audited_, ElementsAre("local: pause */kafka", "local: reset wallets/kafka",
                                    "local: resume wallets/kafka", "local: move to 2 wallets/kafka"));
}

TEST_P(RelayApiTest, WhatIsNotThereIs404WithAHint) {
  for (const char* path : {"/api/outbox/publishers/nobody", "/api/topics/wallets/publishers/nobody",
                           "/api/topics/nothing/publishers/kafka/lag"}) {
    EXPECT_THAT(get_problem(path),
                ::testing::AllOf(HasSubstr("404 not-found"), HasSubstr("GET /api/topics")));
  }
  for (const char* verb : {"pause", "resume", "reset"}) {
    EXPECT_THAT(post_problem(std::string("/api/outbox/publishers/nobody/") + verb, {}), HasSubstr("404"));
    EXPECT_THAT(post_problem(std::string("/api/topics/wallets/publishers/nobody/") + verb, {}),
                HasSubstr("404"));
  }
  EXPECT_THAT(audited_, IsEmpty()) << "nothing was changed";
}

TEST_P(RelayApiTest, WhatCannotBeMeantIs400) {
  EXPECT_THAT(post_problem(pair("rewind"), "{"), HasSubstr("400 invalid-json"));
  EXPECT_THAT(post_problem(pair("rewind"), R"({"position":-1})"), HasSubstr("400 invalid-parameter"));
  EXPECT_THAT(post_problem(pair("rewind"), R"({"position":"1"})"), HasSubstr("whole number"));
  EXPECT_THAT(post_problem(pair("rewind"), R"({"postion":1})"), HasSubstr("did you mean position?"));
  EXPECT_THAT(post_problem(pair("rewind"), R"({"to":1})"),
              HasSubstr("no member 'to' here | there are position"));
  EXPECT_THAT(post_problem(pair("rewind"), R"({"position":4})"), HasSubstr("400 invalid"));
  EXPECT_THAT(get_problem("/api/topics?limit=3"), HasSubstr("there is no parameter 'limit'"));
  EXPECT_EQ(ask(http::Method::get, pair("pause")).status, 405);
}

TEST_P(RelayApiTest, BytesThatAreNoNameAreNobody) {
  for (const char* const bytes : {"%ff", "%ed%a0%80", "%C0%80", "a%00b"}) {
    const std::string name(bytes);
    for (const std::string& path :
         {"/api/topics/" + name + "/publishers/x", "/api/topics/x/publishers/" + name,
          "/api/topics/" + name + "/publishers/x/dead"}) {
      EXPECT_THAT(get_problem(path), HasSubstr("404 not-found")) << path;
    }
    for (const std::string& path :
         {"/api/topics/" + name + "/publishers/x/pause", "/api/topics/x/publishers/" + name + "/resume",
          "/api/outbox/publishers/" + name + "/pause"}) {
      EXPECT_THAT(post_problem(path, {}), HasSubstr("404 not-found")) << path;
    }
    EXPECT_THAT(post_problem("/api/topics/x/publishers/" + name + "/rewind", R"({"position":1})"),
                HasSubstr("404 not-found"));
    EXPECT_THAT(post_problem("/api/topics/x/publishers/" + name + "/dead/discard", R"({"filter":{}})"),
                HasSubstr("404 not-found"));
  }
}

class RelayDeadLettersTest : public RelayApiTest {
 protected:
  void SetUp() override {
    RelayApiTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto epoch = storage().lease_store().acquire("leader", "n1", 60s, false, {});
    ASSERT_TRUE(epoch.has_value());
    const PairName wallets{"wallets", "kafka"};
    const std::vector<LedPair> led =
        storage().progress_store().take({"leader", "n1", *epoch}, Taking::any, {&wallets, 1}, {});
    ASSERT_EQ(led.size(), 1U);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(storage().progress_store().advance(
          std::vector<ProgressStep>{{.name = wallets,
                                     .epoch = led[0].epoch,
                                     .from = Position{i},
                                     .to = Position{i + 1},
                                     .dead = "refused <" + std::to_string(i + 1) + ">"}})[0]);
    }
  }
};
POSTRIDER_FOR_EACH_BACKEND(RelayDeadLettersTest);

TEST_P(RelayDeadLettersTest, AreListedWithTheirEventsPageByPage) {
  EXPECT_THAT(pages(pair("dead") + "?limit=2", "deadLetters", "position"), ElementsAre("1", "2", "3"));
  const json::object all = get(pair("dead"));
  EXPECT_EQ(all.at("nextCursor"), nullptr);
  const json::value& first = all.at("deadLetters").at(0);
  EXPECT_EQ(first.at("topic"), "wallets");
  EXPECT_EQ(first.at("publisher"), "kafka");
  EXPECT_EQ(first.at("error"), "refused <1>");
  EXPECT_EQ(first.at("event").at("type"), "T");
  EXPECT_EQ(first.at("event").at("position"), 1);
  EXPECT_EQ(first.at("event").at("payload"), "{}");
  EXPECT_TRUE(first.at("event").at("tags").as_array().empty());
  EXPECT_THAT(each(get("/api/topics/wallets/publishers/hooks/dead"), "deadLetters", "position"), IsEmpty());
}

TEST_P(RelayDeadLettersTest, EventsOfManyLettersComeTogetherInWhateverOrder) {
  const auto letter = [](std::int64_t position) {
    return DeadLetter{.pair = {"wallets", "kafka"}, .position = Position{position}};
  };
  const std::vector<DeadLetter> letters{letter(3), letter(1), letter(3), letter(99)};
  const LetterEvents all = events_of(storage(), letters, 1U << 20U);
  EXPECT_EQ(all.until, Position{99});
  EXPECT_THAT(all.events, SizeIs(2));
  EXPECT_EQ(all.of(letter(3)).value().position(), Position{3});
  EXPECT_FALSE(all.of(letter(99)).has_value());
  const LetterEvents first = events_of(storage(), letters, 1);
  EXPECT_EQ(first.until, Position{1}) << "the rest is for another read";
  EXPECT_THAT(first.events, SizeIs(1));
  EXPECT_THAT(events_of(storage(), {}, 1).events, IsEmpty());
}

TEST_P(RelayDeadLettersTest, AnEventThatWasRemovedLeavesItsLetter) {
  Transaction tx = storage().begin();
  tx.execute("delete from " + database_->table("events") + " where position = 2");
  tx.commit();
  EXPECT_THAT(each(get(pair("dead")), "deadLetters", "position"), ElementsAre("1", "2", "3"));
  EXPECT_EQ(get(pair("dead")).at("deadLetters").at(1).at("event"), nullptr);
}

TEST_P(RelayDeadLettersTest, AreCountedThenDiscardedAndAudited) {
  const std::string discard = pair("dead/discard");
  EXPECT_EQ(post(discard, R"({"filter":{},"dryRun":true})").at("events"), 3);
  EXPECT_EQ(post(discard, R"({"filter":{"untilPosition":2},"dryRun":true})").at("events"), 2);
  EXPECT_EQ(get(pair()).at("deadLetters"), 3) << "counting removes nothing";
  EXPECT_EQ(post(discard, R"({"filter":{"untilPosition":2}})").at("events"), 2);
  EXPECT_THAT(each(get(pair("dead")), "deadLetters", "position"), ElementsAre("3"));
  EXPECT_EQ(post(discard, R"({"filter":{}})").at("events"), 1);
  EXPECT_EQ(post(discard, R"({"filter":{}})").at("events"), 0);
  EXPECT_THAT(audited_, ElementsAre("local: discard 2 dead letters of wallets/kafka up to 2",
                                    "local: discard 1 dead letters of wallets/kafka"));
}

TEST_P(RelayDeadLettersTest, WhatIsNotThereOrCannotBeMeantIsRefused) {
  const std::string discard = pair("dead/discard");
  EXPECT_THAT(get_problem("/api/topics/wallets/publishers/nobody/dead"), HasSubstr("404 not-found"));
  EXPECT_THAT(post_problem("/api/topics/wallets/publishers/nobody/dead/discard", R"({"filter":{}})"),
              HasSubstr("404 not-found"));
  EXPECT_THAT(post_problem(discard, {}), HasSubstr("filter is missing"));
  EXPECT_THAT(post_problem(discard, R"({"filter":{"untilPositon":2}})"),
              HasSubstr("did you mean filter.untilPosition?"));
  EXPECT_THAT(post_problem(discard, R"({"filter":{"untilPosition":-1}})"), HasSubstr("400"));
  EXPECT_THAT(get_problem(pair("dead") + "?limit=201"), HasSubstr("from 1 to 200"));
  EXPECT_THAT(get_problem(pair("dead") + "?cursor=abc"), HasSubstr("400"));
  EXPECT_EQ(get(pair()).at("deadLetters"), 3);
  EXPECT_THAT(audited_, IsEmpty());
}

}  // namespace
}  // namespace postrider::api
