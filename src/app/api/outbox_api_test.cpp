// SPDX-License-Identifier: Apache-2.0
#include "app/api/outbox_api.hpp"

#include "app/api/api_fixture.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::api {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OutboxApiTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) use(outbox_routes());
  }
  void publish(const std::string& id, const std::string& type = "Placed", Duration lease = {}) {
    const Event event = Event::builder(type)
                            .id(EventId(id))
                            .aggregate("Order", id)
                            .tenant("t")
                            .header("trace", "1")
                            .json(R"({"big": 12345678901234567890})")
                            .build();
    const NewOutboxRow row{.event = &event, .lease = lease};
    Transaction tx = storage().begin();
    storage().outbox_store().insert(tx, "n", {&row, 1});
    tx.commit();
  }
  void end(const std::string& id, Completion::Kind kind, const std::string& error = {}) {
    const Completion one{
        .lease = {EventId(id), birth_token}, .kind = kind, .failed = Attempt{3}, .error = error};
    ASSERT_EQ(storage().outbox_store().complete({&one, 1}), 1U);
  }
  void bury(const std::string& id, const std::string& error = "hopeless",
            const std::string& type = "Placed") {
    publish(id, type, 1h);
    end(id, Completion::Kind::dead, error);
  }
};
POSTRIDER_FOR_EACH_BACKEND(OutboxApiTest);

TEST_P(OutboxApiTest, CountsAndOneEvent) {
  publish("p");
  bury("x", "order 7 not found");
  const json::object counts = get("/api/outbox/counts");
  EXPECT_EQ(counts.at("pending"), 1);
  EXPECT_EQ(counts.at("dead"), 1);
  const json::object one = get("/api/outbox/events/x");
  EXPECT_EQ(one.at("status"), "DEAD");
  EXPECT_EQ(one.at("attempts"), 3);
  EXPECT_EQ(one.at("lastError"), "order 7 not found");
  EXPECT_EQ(one.at("payload"), R"({"big": 12345678901234567890})") << "as published, byte for byte";
  EXPECT_EQ(one.at("headers").at("trace"), "1");
  EXPECT_THAT(get_problem("/api/outbox/events/nobody"), HasSubstr("404 not-found"));
  EXPECT_THAT(get_problem("/api/outbox/events/a%20b"), HasSubstr("404 not-found"));
}

TEST_P(OutboxApiTest, OneEventHasTheHistoryOfItsAttempts) {
  publish("p");
  EXPECT_TRUE(get("/api/outbox/events/p").at("history").as_array().empty());
  bury("x", "order 7 not found");
  const json::object one = get("/api/outbox/events/x");
  const json::array history = one.at("history").as_array();
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].at("attempt"), 3);
  EXPECT_EQ(history[0].at("node"), "n");
  EXPECT_EQ(history[0].at("outcome"), "DEAD");
  EXPECT_EQ(history[0].at("error"), "order 7 not found");
  const TimePoint at = time_at(history[0].as_object(), "at");
  EXPECT_GE(at, time_at(one, "createdAt"));
  EXPECT_LE(at, time_at(one, "doneAt")) << "written just before";
  EXPECT_FALSE(get("/api/outbox/dead").at("events").at(0).as_object().contains("history"));
}

TEST_P(OutboxApiTest, SearchGoesPageByPage) {
  for (int i = 1; i <= 7; ++i) publish("p" + std::to_string(i), i % 2 == 0 ? "Paid" : "Placed");
  bury("x1");
  EXPECT_THAT(pages("/api/outbox/events?limit=3", "events", "id"),
              ElementsAre("x1", "p7", "p6", "p5", "p4", "p3", "p2", "p1"));
  EXPECT_THAT(pages("/api/outbox/events?status=NEW&type=Paid&limit=1", "events", "id"), SizeIs(3));
  EXPECT_THAT(pages("/api/outbox/events?status=PENDING&aggregateType=Order&aggregateId=p3", "events", "id"),
              ElementsAre("p3"));
  EXPECT_THAT(pages("/api/outbox/events?status=DEAD&tenantId=t", "events", "id"), ElementsAre("x1"));
  EXPECT_THAT(pages("/api/outbox/events?status=DONE", "events", "id"), IsEmpty());
  EXPECT_THAT(pages("/api/outbox/events?from=2100-01-01T00:00:00Z", "events", "id"), IsEmpty());
  EXPECT_FALSE(get("/api/outbox/events?limit=1").at("events").at(0).as_object().contains("payload"));
}

TEST_P(OutboxApiTest, ACursorBelongsToItsList) {
  publish("p1");
  publish("p2");
  const std::string cursor(get("/api/outbox/events?limit=1").at("nextCursor").as_string().c_str());
  EXPECT_EQ(get("/api/outbox/events?limit=2&cursor=" + cursor).at("events").at(0).at("id"), "p1");
  for (const std::string& other :
       {"/api/outbox/events?type=Paid&cursor=" + cursor, "/api/outbox/dead?cursor=" + cursor,
        "/api/outbox/events?cursor=" + cursor.substr(2), std::string("/api/outbox/events?cursor=zz"),
        std::string("/api/outbox/events?cursor=")}) {
    EXPECT_THAT(get_problem(other), HasSubstr("400 invalid-parameter: cursor does not come from")) << other;
  }
}

TEST_P(OutboxApiTest, WhatCannotBeMeantIsNamed) {
  EXPECT_THAT(get_problem("/api/outbox/events?typ=x"), HasSubstr("did you mean type?"));
  EXPECT_THAT(get_problem("/api/outbox/events?status=new"), HasSubstr("PENDING, NEW, RETRY, DONE and DEAD"));
  EXPECT_THAT(get_problem("/api/outbox/events?limit=0"), HasSubstr("limit must be a whole number from 1"));
  EXPECT_THAT(get_problem("/api/outbox/events?from=yesterday"), HasSubstr("RFC 3339"));
  EXPECT_THAT(get_problem("/api/outbox/events?type=%00"), HasSubstr("UTF-8"));
  EXPECT_THAT(get_problem("/api/outbox/counts?x=1"), HasSubstr("400"));
}

TEST_P(OutboxApiTest, StuckOnesAreRequeued) {
  publish("p1", "Placed", 1h);
  publish("p2", "Paid");
  EXPECT_THAT(pages("/api/outbox/stuck", "events", "id"), IsEmpty()) << "for five minutes";
  EXPECT_THAT(pages("/api/outbox/stuck?for=0s&limit=1", "events", "id"), ElementsAre("p2", "p1"));
  EXPECT_EQ(get("/api/outbox/events/p1").at("owner"), "n");
  EXPECT_TRUE(get("/api/outbox/events/p1").at("leaseUntil").is_string());
  EXPECT_EQ(post("/api/outbox/requeue", R"({"filter":{"stuckFor":"0s"},"dryRun":true})").at("events"), 1);
  EXPECT_THAT(audited_, IsEmpty());
  EXPECT_EQ(post("/api/outbox/requeue", R"({"filter":{"owner":"nobody"}})").at("events"), 0);
  EXPECT_EQ(post("/api/outbox/requeue", R"({"filter":{"stuckFor":"0s","owner":"n"}})").at("events"), 1);
  EXPECT_TRUE(get("/api/outbox/events/p1").at("owner").is_null());
  EXPECT_TRUE(get("/api/outbox/events/p1").at("leaseUntil").is_null());
  EXPECT_THAT(audited_, ElementsAre(HasSubstr("local: requeue 1 events of the outbox, {\"filter\"")));
  const std::string cursor(get("/api/outbox/stuck?for=0s&limit=1").at("nextCursor").as_string().c_str());
  EXPECT_THAT(get_problem("/api/outbox/stuck?for=1s&cursor=" + cursor), HasSubstr("cursor does not come"));
}

TEST_P(OutboxApiTest, WhatWaitsBehindItsKeyIsLeasedToNobody) {
  const auto of_key = [&](const std::string& id, std::optional<TimePoint> deliver_at) {
    EventBuilder builder = Event::builder("Placed");
    builder.id(EventId(id)).json("{}");
    if (deliver_at) builder.deliver_at(*deliver_at);
    const Event event = builder.build();
    const NewOutboxRow row{.event = &event, .ordering_key = "k"};
    Transaction tx = storage().begin();
    storage().outbox_store().insert(tx, "n", {&row, 1});
    tx.commit();
  };
  of_key("head", Clock::system().now() + 24h);
  of_key("behind", {});
  ASSERT_TRUE(storage().outbox_store().claim({.owner = "n", .lease = 60s, .limit = 10}).empty());
  ASSERT_TRUE(OutboxAdmin(storage()).find(EventId("behind"))->lease_until) << "passed over until tomorrow";
  const json::object behind = get("/api/outbox/stuck?for=0s").at("events").as_array().at(0).as_object();
  EXPECT_EQ(behind.at("id"), "behind");
  EXPECT_TRUE(behind.at("owner").is_null());
  EXPECT_TRUE(behind.at("leaseUntil").is_null());
}

TEST_P(OutboxApiTest, CancelledOnesAreDeadLettersThatCanBeReplayed) {
  publish("p1");
  publish("p2", "Paid");
  const std::string all = R"({"filter":{"statuses":["NEW"],"types":["Placed","Paid"]},"dryRun":true})";
  EXPECT_EQ(post("/api/outbox/cancel", all).at("events"), 2);
  EXPECT_EQ(post("/api/outbox/cancel", R"({"filter":{"ids":["p1"]},"reason":"sold out"})").at("events"), 1);
  EXPECT_EQ(get("/api/outbox/events/p1").at("status"), "DEAD");
  EXPECT_EQ(get("/api/outbox/events/p1").at("lastError"), "cancelled: sold out");
  EXPECT_EQ(
      post("/api/outbox/cancel", R"({"filter":{"aggregateType":"Order","aggregateId":"p2"}})").at("events"),
      1);
  EXPECT_EQ(get("/api/outbox/events/p2").at("lastError"), "cancelled: by local");
  EXPECT_EQ(post("/api/outbox/dead/replay", R"({"filter":{"errorContains":"sold out"}})").at("events"), 1);
  EXPECT_EQ(get("/api/outbox/events/p1").at("status"), "NEW");
  EXPECT_EQ(post("/api/outbox/cancel", R"({"filter":{"ids":[]}})").at("events"), 0);
  EXPECT_THAT(audited_, SizeIs(3)) << "what changed nothing is not told";
}

TEST_P(OutboxApiTest, AFilterOfPendingEventsIsRead) {
  const auto refused = [&](const std::string& filter) {
    return post_problem("/api/outbox/requeue", R"({"filter":)" + filter + "}");
  };
  EXPECT_THAT(post_problem("/api/outbox/requeue", "{}"), HasSubstr("filter is missing"));
  EXPECT_THAT(post_problem("/api/outbox/requeue", R"({"filter":{},"reason":"x"})"),
              HasSubstr("no member 'reason'"));
  EXPECT_THAT(refused(R"({"statuses":["DEAD"]})"), HasSubstr("there are NEW and RETRY"));
  EXPECT_THAT(refused(R"({"type":"x"})"), HasSubstr("filter.type"));
  EXPECT_THAT(refused(R"({"ids":["a b"]})"), HasSubstr("400"));
  EXPECT_THAT(refused(R"({"stuckFor":"soon"})"), HasSubstr("filter.stuckFor"));
  EXPECT_THAT(refused(R"({"delayed":1})"), HasSubstr("filter.delayed"));
  EXPECT_THAT(post_problem("/api/outbox/cancel", R"({"filter":{},"reason":""})"), HasSubstr("400"));
  EXPECT_THAT(get_problem("/api/outbox/stuck?status=NEW"), HasSubstr("400"));
}

TEST_P(OutboxApiTest, WhatWasLostOnTheWayDoesNotMeanAll) {
  publish("p1");
  publish("p2");
  const auto cancel = [&](const char* body) { return post_problem("/api/outbox/cancel", body); };
  EXPECT_THAT(cancel(R"({"filter":{},"dryRun":null})"), HasSubstr("400 invalid-parameter: dryRun is null"));
  EXPECT_THAT(cancel(R"({"filter":{"ids":null}})"), HasSubstr("400 invalid-parameter: filter.ids is null"));
  EXPECT_THAT(cancel(R"({"filter":null})"), HasSubstr("filter is null"));
  EXPECT_THAT(cancel(R"({"filter":{"ids":["p1"]},"filter":{}})"),
              HasSubstr("400 invalid-parameter: the member 'filter' is given more than once"));
  EXPECT_THAT(cancel(R"({"filter":{"ids":["p1"],"ids":["p1","p2"]}})"), HasSubstr("the member 'ids'"));
  EXPECT_THAT(post_problem("/api/outbox/dead/replay", R"({"filter":{},"rate":null})"),
              HasSubstr("rate is null"));
  EXPECT_THAT(post_problem("/api/outbox/purge", R"({"olderThan":"0s","dryRun":null})"),
              HasSubstr("dryRun is null"));
  EXPECT_EQ(get("/api/outbox/counts").at("pending"), 2);
  EXPECT_EQ(post("/api/outbox/cancel", R"({"filter":{"ids":[]}})").at("events"), 0) << "none is none";
  EXPECT_THAT(audited_, IsEmpty());
}

TEST_P(OutboxApiTest, DeadLettersAreGroupedByTheirError) {
  bury("x1", "order 1 not found");
  bury("x2", "order 2 not found");
  bury("x3", "HTTP 503", "Paid");
  publish("p1");
  EXPECT_THAT(pages("/api/outbox/dead?limit=2&type=Placed", "events", "id"), ElementsAre("x2", "x1"));
  const json::object groups = get("/api/outbox/dead/groups");
  EXPECT_THAT(each(groups, "groups", "error"), ElementsAre("order # not found", "HTTP 503"));
  EXPECT_THAT(each(groups, "groups", "events"), ElementsAre("2", "1"));
  EXPECT_EQ(groups.at("complete"), true);
  // A group's filter is one that replay takes.
  const std::string filter = json::serialize(groups.at("groups").at(0).at("filter"));
  EXPECT_EQ(post("/api/outbox/dead/replay", R"({"dryRun":true,"filter":)" + filter + "}").at("events"), 2);
}

TEST_P(OutboxApiTest, ReplayIsBoundedAndAudited) {
  for (int i = 1; i <= 5; ++i) bury("x" + std::to_string(i));
  EXPECT_EQ(post("/api/outbox/dead/replay", R"({"filter":{},"dryRun":true})").at("events"), 5);
  EXPECT_THAT(audited_, IsEmpty());
  const json::object some = post("/api/outbox/dead/replay", R"({"filter":{},"limit":2,"rate":1})");
  EXPECT_EQ(some.at("events"), 2);
  EXPECT_EQ(some.at("left"), 3);
  EXPECT_EQ(some.at("nextStartInSeconds"), 2.0);
  EXPECT_THAT(audited_, ElementsAre(HasSubstr("local: replay 2 dead letters, {\"filter\":{}")));
  EXPECT_EQ(post("/api/outbox/dead/replay", R"({"filter":{"ids":["x4","nobody"]}})").at("events"), 1);
  EXPECT_EQ(get("/api/outbox/events/x4").at("status"), "NEW");
  EXPECT_EQ(get("/api/outbox/counts").at("dead"), 2);
}

TEST_P(OutboxApiTest, PiecesOfAReplayAreAuditedAlike) {
  for (int i = 1; i <= 5; ++i) bury("x" + std::to_string(i));
  const std::string rest = R"("filter":{"type":"Placed"},"rate":1,"action":"a-1"})";
  EXPECT_EQ(post("/api/outbox/dead/replay", R"({"limit":2,)" + rest).at("events"), 2);
  EXPECT_EQ(post("/api/outbox/dead/replay", R"({"startInSeconds":2,"limit":3,)" + rest).at("events"), 3);
  const std::string what = R"( dead letters, {"filter":{"type":"Placed"},"rate":1})";
  EXPECT_THAT(audited_, ElementsAre("local: replay 2" + what, "local: replay 3" + what));
  EXPECT_THAT(pieces_, ElementsAre("a-1", "a-1"));
  EXPECT_THAT(post_problem("/api/outbox/dead/replay", R"({"filter":{},"action":""})"),
              HasSubstr("action must have 1 to 64 bytes"));
}

TEST_P(OutboxApiTest, IdsOfWhichThereIsNoEventAreNamed) {
  publish("p");
  bury("x");
  const auto unknown = [&](const std::string& verb, const std::string& body) {
    return json::serialize(post("/api/outbox/" + verb, body).at("unknownIds"));
  };
  for (const std::string verb : {"requeue", "cancel", "dead/replay"}) {
    const std::string both = R"({"filter":{"ids":["p","x","q","nobody","q"]},"dryRun":true})";
    EXPECT_EQ(unknown(verb, both), R"(["nobody","q"])") << "whatever becomes of those that there are";
    EXPECT_EQ(post("/api/outbox/" + verb, both).at("unknown"), 2);
    EXPECT_FALSE(post("/api/outbox/" + verb, R"({"filter":{"type)" + std::string(verb[0] == 'd' ? "" : "s") +
                                                 R"(":"Paid"},"dryRun":true})")
                     .contains("unknown"));
  }
  EXPECT_EQ(unknown("cancel", R"({"filter":{"ids":["p","nobody"]}})"), R"(["nobody"])");
  EXPECT_EQ(unknown("dead/replay", R"({"filter":{"ids":["p","x","nobody"]}})"), R"(["nobody"])");
  EXPECT_EQ(unknown("cancel", R"({"filter":{"ids":[]}})"), "[]");
  std::string many = R"({"filter":{"ids":["p")";
  for (int i = 0; i < 300; ++i) many += ",\"n" + std::to_string(i) + "\"";
  const json::object answer = post("/api/outbox/requeue", many + "]}}");
  EXPECT_EQ(answer.at("unknown"), 300);
  EXPECT_EQ(answer.at("unknownIds").as_array().size(), 100U) << "no answer is as long as one likes";
}

TEST_P(OutboxApiTest, AReplayNeedsAFilterThatItUnderstands) {
  const auto replay = [&](const char* body) { return post_problem("/api/outbox/dead/replay", body); };
  EXPECT_THAT(replay("{}"), HasSubstr("filter is missing"));
  EXPECT_THAT(replay(R"({"filter":{},"startInSeconds":31536001})"),
              HasSubstr("startInSeconds must be a number of seconds from 0 to 31536000"));
  EXPECT_THAT(replay(""), HasSubstr("filter is missing"));
  EXPECT_THAT(replay(R"({"filter":{"tpye":"x"}})"), HasSubstr("did you mean filter.type?"));
  EXPECT_THAT(replay(R"({"filter":{},"rate":0})"), HasSubstr("rate must be a whole number from 1"));
  EXPECT_THAT(replay(R"({"filter":{"ids":"a b"}})"), HasSubstr("400"));
  EXPECT_THAT(replay(R"({"filter":[]})"), HasSubstr("filter must be an object"));
  EXPECT_THAT(replay(R"({"filter":{},"dryRun":"yes"})"), HasSubstr("dryRun must be true or false"));
}

TEST_P(OutboxApiTest, ADeadLetterIsCorrected) {
  bury("x");
  const json::object edited =
      post("/api/outbox/dead/x/edit", R"({"payload":{"id":1},"headers":{"fixed":"yes"}})");
  EXPECT_EQ(edited.at("payload"), R"({"id":1})");
  EXPECT_EQ(edited.at("headers").at("fixed"), "yes");
  EXPECT_EQ(edited.at("status"), "DEAD");
  EXPECT_EQ(post("/api/outbox/dead/x/edit", R"({"payloadJson":"[ 1 ]"})").at("payload"), "[ 1 ]");
  EXPECT_EQ(post("/api/outbox/dead/x/edit", R"({"payloadBase64":"AP8="})").at("payloadBase64"), "AP8=");
  EXPECT_THAT(audited_, SizeIs(3));
  const auto edit = [&](const char* id, const char* body) {
    return post_problem(std::string("/api/outbox/dead/") + id + "/edit", body);
  };
  publish("alive");
  EXPECT_THAT(edit("alive", R"({"payload":1})"), HasSubstr("404"));
  EXPECT_THAT(edit("x", "{}"), HasSubstr("give one of payload"));
  EXPECT_THAT(edit("x", R"({"payloadJson":"{"})"), HasSubstr("400"));
  EXPECT_THAT(edit("x", R"({"payloadBase64":"?"})"), HasSubstr("not base64"));
  EXPECT_THAT(edit("x", R"({"payload":1,"headers":{"a":1}})"), HasSubstr("400"));
}

TEST_P(OutboxApiTest, PurgeRemovesWhatIsOldEnough) {
  publish("d", "Placed", 1h);
  end("d", Completion::Kind::done);
  bury("x");
  EXPECT_EQ(post("/api/outbox/purge", R"({"olderThan":"1d"})").at("events"), 0);
  EXPECT_EQ(post("/api/outbox/purge", R"({"olderThan":"0s","dryRun":true})").at("events"), 1);
  EXPECT_EQ(get("/api/outbox/counts").at("done"), 1);
  EXPECT_EQ(post("/api/outbox/purge", R"({"olderThan":"0s"})").at("events"), 1);
  EXPECT_EQ(get("/api/outbox/counts").at("done"), 0);
  EXPECT_EQ(post("/api/outbox/purge", R"({"olderThan":"0s","status":"DEAD"})").at("events"), 1);
  EXPECT_THAT(audited_, ElementsAre("local: purge 1 DONE events older than 0s",
                                    "local: purge 1 DEAD events older than 0s"));
  EXPECT_THAT(post_problem("/api/outbox/purge", "{}"), HasSubstr("olderThan is missing"));
  EXPECT_THAT(post_problem("/api/outbox/purge", R"({"olderThan":"1d","status":"NEW"})"),
              HasSubstr("never removed"));
  EXPECT_THAT(post_problem("/api/outbox/purge", R"({"olderThan":"soon"})"), HasSubstr("400"));
}

}  // namespace
}  // namespace postrider::api
