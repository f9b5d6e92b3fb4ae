// SPDX-License-Identifier: Apache-2.0
#include "app/api/queue_api.hpp"

#include "app/api/api_fixture.hpp"
#include "postrider/event_queue.hpp"
#include "storage/projection_store.hpp"

namespace postrider::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class QueueApiTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    queue_.emplace(storage());
    use(queue_routes(5min));
  }
  std::int64_t publish(const std::string& id, const std::string& type = "Placed") {
    const Published published = queue_->publish(Event::builder(type).id(EventId(id)).json("{}").build());
    return static_cast<std::int64_t>(published.id());
  }
  std::string path(std::int64_t id) { return "/api/queue/events/" + std::to_string(id); }
  std::optional<EventQueue> queue_;
};
POSTRIDER_FOR_EACH_BACKEND(QueueApiTest);

TEST_P(QueueApiTest, ListsAndCounts) {
  for (int i = 1; i <= 60; ++i) publish("e" + std::to_string(i), i % 2 == 0 ? "Paid" : "Placed");
  (void)queue_->poll();
  const json::object counts = get("/api/queue/counts");
  EXPECT_EQ(counts.at("pending"), 59);
  EXPECT_EQ(counts.at("processing"), 1);
  EXPECT_EQ(counts.at("attempts").at("1"), 1);
  EXPECT_THAT(pages("/api/queue/events?limit=30", "events", "eventId"), SizeIs(60)) << "an end that is full";
  EXPECT_THAT(pages("/api/queue/events?limit=7&type=Paid", "events", "eventId"), SizeIs(30));
  EXPECT_THAT(pages("/api/queue/events?status=PROCESSING", "events", "eventId"), ElementsAre("e1"));
  EXPECT_THAT(pages("/api/queue/events?eventId=e7&eventId=e8", "events", "eventId"), ElementsAre("e7", "e8"));
  EXPECT_THAT(pages("/api/queue/quarantine", "events", "eventId"), IsEmpty());
  EXPECT_FALSE(get("/api/queue/events?limit=1").at("events").at(0).as_object().contains("payload"));
  EXPECT_THAT(get_problem("/api/queue/events?status=DONE"), HasSubstr("there is no status 'DONE'"));
  EXPECT_THAT(get_problem("/api/queue/events?stats=DONE"), HasSubstr("did you mean status?"));
}

TEST_P(QueueApiTest, OneEventHasWhatItsHandlersSaid) {
  const std::int64_t id = publish("e1");
  QueuedEvent claimed = queue_->poll().value();
  (void)queue_->once(claimed.claim, "mail", [] {});
  json::object one = get(path(id));
  EXPECT_EQ(one.at("status"), "PROCESSING");
  EXPECT_EQ(one.at("payload"), "{}");
  EXPECT_THAT(each(one, "results", "result"), ElementsAre("success"));
  const std::vector<HandlerResult> results{
      {.handler = "h", .verdict = HandlerVerdict::unrecoverable_error, .error = "no such order"}};
  ASSERT_EQ(queue_->finalize(claimed.claim, results), Settled::applied);
  one = get(path(id));
  EXPECT_EQ(one.at("status"), "COMPLETED_WITH_ERRORS");
  EXPECT_EQ(one.at("eventId"), "e1");
  EXPECT_THAT(each(one, "results", "error"), ::testing::Contains("no such order"));
  EXPECT_THAT(get_problem("/api/queue/events/99"), HasSubstr("404 not-found"));
  EXPECT_THAT(get_problem("/api/queue/events/e1"), HasSubstr("it is a number"));
}

TEST_P(QueueApiTest, OneEventHasTheHistoryOfItsAttempts) {
  const std::int64_t id = publish("e1");
  const QueuedEvent claimed = queue_->poll().value();
  EXPECT_TRUE(get(path(id)).at("history").as_array().empty());
  ASSERT_EQ(queue_->fail(claimed.claim, "no such order"), Settled::applied);
  const json::object one = get(path(id));
  EXPECT_EQ(one.at("status"), "FAILED");
  EXPECT_THAT(each(one, "history", "outcome"), ElementsAre("FAILED"));
  EXPECT_EQ(one.at("history").at(0).at("attempt"), 1);
  const TimePoint at = time_at(one.at("history").at(0).as_object(), "at");
  EXPECT_GE(at, time_at(one, "processingStartedAt"));
  EXPECT_LE(at, time_at(one, "finalizedAt")) << "written just before";
  EXPECT_EQ(one.at("history").at(0).at("startedAt"), one.at("processingStartedAt"));
  EXPECT_THAT(std::string(one.at("history").at(0).at("error").as_string()), HasSubstr("no such order"));
  EXPECT_FALSE(get("/api/queue/log").at("entries").at(0).as_object().contains("history"));
}

TEST_P(QueueApiTest, TheLogIsReadFromAnyPlace) {
  for (int i = 1; i <= 5; ++i) {
    publish("e" + std::to_string(i), i % 2 == 0 ? "Paid" : "Placed");
    const QueuedEvent claimed = queue_->poll().value();
    ASSERT_EQ(i == 3 ? queue_->fail(claimed.claim, "why") : queue_->finalize(claimed.claim),
              Settled::applied);
  }
  EXPECT_THAT(pages("/api/queue/log?limit=2", "entries", "eventId"),
              ElementsAre("e1", "e2", "e3", "e4", "e5"));
  EXPECT_THAT(pages("/api/queue/log?status=FAILED", "entries", "eventId"), ElementsAre("e3"));
  EXPECT_THAT(pages("/api/queue/log?type=Paid&limit=1", "entries", "eventId"), ElementsAre("e2", "e4"));
  const json::object all = get("/api/queue/log");
  const std::string last = json::serialize(all.at("head"));
  EXPECT_THAT(pages("/api/queue/log?after=" + last, "entries", "eventId"), IsEmpty());
  EXPECT_TRUE(all.at("nextCursor").is_null()) << "this page has them all";
  EXPECT_TRUE(get("/api/queue/log?limit=5").at("nextCursor").is_null()) << "an end that is full";
  EXPECT_TRUE(get("/api/queue/log?type=none").at("nextCursor").is_null());
  EXPECT_THAT(pages("/api/queue/log?eventId=e2&eventId=e5", "entries", "eventId"), ElementsAre("e2", "e5"));
}

TEST_P(QueueApiTest, TheLogIsReadFromTheNewestDown) {
  for (int i = 1; i <= 5; ++i) {
    publish("e" + std::to_string(i), i % 2 == 0 ? "Paid" : "Placed");
    ASSERT_EQ(queue_->finalize(queue_->poll().value().claim), Settled::applied);
  }
  const std::string newest = "/api/queue/log?backwards=true";
  EXPECT_THAT(pages(newest + "&limit=2", "entries", "eventId"), ElementsAre("e5", "e4", "e3", "e2", "e1"));
  EXPECT_THAT(pages(newest + "&type=Paid", "entries", "eventId"), ElementsAre("e4", "e2"));
  EXPECT_TRUE(get(newest + "&limit=5").at("nextCursor").is_null()) << "an end that is full";
  const std::string third = json::serialize(get(newest).at("entries").at(2).at("seq"));
  EXPECT_THAT(pages(newest + "&after=" + third, "entries", "eventId"), ElementsAre("e2", "e1"));
}

TEST_P(QueueApiTest, AnEmptyLogEndsAtOnce) {
  EXPECT_TRUE(get("/api/queue/log").at("nextCursor").is_null());
  EXPECT_TRUE(get("/api/queue/log?backwards=true").at("nextCursor").is_null());
  EXPECT_THAT(get_problem("/api/queue/log?backwards=often"), HasSubstr("backwards must be true or false"));
}

TEST_P(QueueApiTest, StuckOnesAreRequeued) {
  publish("e1");
  publish("e2");
  (void)queue_->poll();
  EXPECT_THAT(pages("/api/queue/stuck", "events", "eventId"), IsEmpty()) << "for five minutes";
  EXPECT_THAT(pages("/api/queue/stuck?for=0s", "events", "eventId"), ElementsAre("e1"));
  EXPECT_EQ(post("/api/queue/requeue", R"({"filter":{"stuckFor":"0s"},"dryRun":true})").at("events"), 1);
  EXPECT_THAT(audited_, IsEmpty());
  EXPECT_EQ(post("/api/queue/requeue", R"({"filter":{"stuckFor":"0s"}})").at("events"), 1);
  EXPECT_EQ(get("/api/queue/counts").at("processing"), 0);
  EXPECT_THAT(audited_, ElementsAre(HasSubstr("local: requeue 1 events of the queue, {\"filter\"")));
}

TEST_P(QueueApiTest, CancelledOnesCanBeReplayed) {
  const std::int64_t id = publish("e1");
  publish("e2");
  const std::string filter = R"({"filter":{"ids":[)" + std::to_string(id) + R"(]},"reason":"sold out"})";
  EXPECT_EQ(post("/api/queue/cancel", filter).at("events"), 1);
  const json::object one = get(path(id));
  EXPECT_EQ(one.at("status"), "FAILED");
  EXPECT_EQ(one.at("results").at(0).at("error"), "sold out");
  EXPECT_TRUE(one.at("processingStartedAt").is_null()) << "it never ran";
  EXPECT_EQ(post("/api/queue/replay", R"({"filter":{"eventIds":["e1"]},"dryRun":true})").at("events"), 1);
  EXPECT_EQ(post("/api/queue/replay", R"({"filter":{"statuses":["FAILED"]}})").at("events"), 1);
  EXPECT_EQ(get("/api/queue/counts").at("pending"), 2);
  EXPECT_EQ(post("/api/queue/cancel", R"({"filter":{"eventIds":["e2"]}})").at("events"), 1);
  EXPECT_EQ(post("/api/queue/release", R"({"filter":{}})").at("events"), 0);
  EXPECT_THAT(audited_, SizeIs(3)) << "what changed nothing is not told";
}

TEST_P(QueueApiTest, WhatCannotBeMeantIsNamed) {
  EXPECT_THAT(post_problem("/api/queue/requeue", "{}"), HasSubstr("filter is missing"));
  EXPECT_THAT(post_problem("/api/queue/requeue", R"({"filter":{},"reason":"x"})"),
              HasSubstr("no member 'reason'"));
  EXPECT_THAT(post_problem("/api/queue/replay", R"({"filter":{"stuckFor":"1h"}})"),
              HasSubstr("filter.stuckFor"));
  EXPECT_THAT(post_problem("/api/queue/cancel", R"({"filter":{"ids":["1"]}})"),
              HasSubstr("list of whole numbers"));
  EXPECT_THAT(post_problem("/api/queue/cancel", R"({"filter":{},"reason":""})"), HasSubstr("400"));
}

TEST_P(QueueApiTest, ProjectionsPauseAndResume) {
  ProjectionStore& store = storage().projection_store();
  ASSERT_EQ(store.change("orders", 1, ProjectionChange::enroll), ProjectionChanged::done);
  ASSERT_EQ(store.change("orders", 2, ProjectionChange::enroll), ProjectionChanged::done);
  EXPECT_THAT(each(get("/api/projections"), "projections", "version"), ElementsAre("1", "2"));
  EXPECT_EQ(post("/api/projections/orders/pause").at("status"), "PAUSED");
  EXPECT_EQ(post("/api/projections/orders/pause?version=2").at("version"), 2);
  EXPECT_EQ(post("/api/projections/orders/resume").at("status"), "ACTIVE");
  EXPECT_THAT(audited_, ElementsAre("local: pause projection orders", "local: pause projection orders",
                                    "local: resume projection orders"));
  EXPECT_THAT(post_problem("/api/projections/nobody/pause", {}), HasSubstr("404"));
  EXPECT_THAT(post_problem("/api/projections/orders/pause?version=3", {}), HasSubstr("404"));
}

}  // namespace
}  // namespace postrider::api
