// SPDX-License-Identifier: Apache-2.0
#include "app/api/publish_api.hpp"

#include <future>
#include <thread>

#include "app/api/api_fixture.hpp"
#include "app/api/outbox_api.hpp"

namespace postrider::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class PublishApiTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    use(publish_routes([this] { return outbox_.get(); }));
    use(outbox_routes());
  }
  std::unique_ptr<Outbox> outbox_;
};
POSTRIDER_FOR_EACH_BACKEND(PublishApiTest);

TEST_P(PublishApiTest, AnEventIsPublishedAsItCame) {
  const json::object made =
      post("/api/events", R"({"type":"OrderPlaced","payload":{"id":1},"aggregateType":"Order",
    "aggregateId":"1","tenantId":"t","orderingKey":"k","headers":{"trace":"1"},"occurredAt":"2026-06-01T10:15:30Z"})",
           201);
  EXPECT_EQ(made.at("status"), "created");
  const json::object one = get("/api/outbox/events/" + std::string(made.at("id").as_string().c_str()));
  EXPECT_EQ(one.at("type"), "OrderPlaced");
  EXPECT_EQ(one.at("payload"), R"({"id":1})");
  EXPECT_EQ(one.at("aggregateType"), "Order");
  EXPECT_EQ(one.at("aggregateId"), "1");
  EXPECT_EQ(one.at("tenantId"), "t");
  EXPECT_EQ(one.at("orderingKey"), "k");
  EXPECT_EQ(one.at("headers").at("trace"), "1");
  EXPECT_EQ(one.at("occurredAt"), "2026-06-01T10:15:30Z");
}

TEST_P(PublishApiTest, ARepeatIsADuplicateNotASecondEvent) {
  const std::string event = R"({"id":"order-1","type":"T","payloadJson":"{ \"a\": 1 }"})";
  EXPECT_EQ(post("/api/events", event, 201).at("status"), "created");
  EXPECT_EQ(post("/api/events", event, 200).at("status"), "duplicate");
  EXPECT_EQ(get("/api/outbox/counts").at("pending"), 1);
  EXPECT_EQ(get("/api/outbox/events/order-1").at("payload"), "{ \"a\": 1 }") << "byte for byte";
}

TEST_P(PublishApiTest, ABatchIsOneTransaction) {
  post("/api/events", R"({"id":"b","type":"T"})", 201);
  const json::object answer = post(
      "/api/events",
      R"({"events":[{"id":"a","type":"T"},{"id":"b","type":"T"},{"id":"a","type":"T"},{"type":"T"}]})", 201);
  EXPECT_THAT(each(answer, "results", "status"), ElementsAre("created", "duplicate", "duplicate", "created"));
  EXPECT_EQ(get("/api/outbox/counts").at("pending"), 3);
  EXPECT_THAT(post_problem("/api/events", R"({"events":[{"type":"T"},{"type":"T","payloadJson":"{"}]})"),
              HasSubstr("events[1]"));
  EXPECT_EQ(get("/api/outbox/counts").at("pending"), 3) << "all or none";
}

TEST_P(PublishApiTest, TheSameIdFromManyAtOnceIsPublishedOnce) {
  std::atomic<int> created{0};
  std::atomic<int> duplicates{0};
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 6; ++i) {
      clients.emplace_back([&] {
        for (int n = 0; n < 5; ++n) {
          const http::Response answer =
              ask(http::Method::post, "/api/events",
                  R"({"events":[{"id":"e)" + std::to_string(n) + R"(","type":"T"}]})");
          if (answer.status == 201) ++created;
          if (answer.status == 200) ++duplicates;
        }
      });
    }
  }
  EXPECT_EQ(created, 5);
  EXPECT_EQ(duplicates, 25);
}

TEST_P(PublishApiTest, ARunningOutboxDeliversAtOnce) {
  std::promise<std::string> delivered;
  outbox_ = std::make_unique<Outbox>(storage(), OutboxOptions{.log = [](LogLevel, std::string_view) {}});
  outbox_->on("T", [&](const Event& event) { delivered.set_value(std::string(event.payload())); });
  outbox_->start();
  post("/api/events", R"({"type":"T","payload":[1,2]})", 201);
  auto payload = delivered.get_future();
  ASSERT_EQ(payload.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(payload.get(), "[1,2]");
  outbox_->stop();
}

TEST_P(PublishApiTest, TablesOfALaterVersionGetNothing) {
  Transaction tx = storage().begin();
  const std::string table = database_->table("schema_migrations");
  tx.execute("INSERT INTO " + table + " (version, name, applied_at) SELECT 999, name, applied_at FROM " +
             table + " WHERE version = 1");
  tx.commit();
  http::Router router;
  mount(router, publish_routes([]() -> Outbox* { return nullptr; }),
        {.access = &access_,
         .storage = [this] { return &storage(); },
         .audit = [](const AuditRecord&) {},
         .log = [](LogLevel, std::string_view) {}});
  EXPECT_EQ(ask_router(router, http::Method::post, "/api/events", R"({"type":"T"})").status, 503);
}

TEST_P(PublishApiTest, NullIsNoneButForThePayload) {
  post("/api/events", R"({"id":"a","type":"T","payload":null,"tenantId":null,"headers":null})", 201);
  EXPECT_EQ(get("/api/outbox/events/a").at("payload"), "null");
}

TEST_P(PublishApiTest, WhatCannotBeMeantIsNamed) {
  const auto publish = [&](const std::string& body) { return post_problem("/api/events", body); };
  EXPECT_THAT(publish(""), HasSubstr("the body is empty"));
  EXPECT_THAT(publish("{}"), HasSubstr("type is missing"));
  EXPECT_THAT(publish(R"({"type":"T","paylod":1})"), HasSubstr("did you mean payload?"));
  EXPECT_THAT(publish(R"({"type":"T","payload":1,"payloadJson":"1"})"), HasSubstr("give one of"));
  EXPECT_THAT(publish(R"({"type":"T","payload":{"a":1,"a":2}})"), HasSubstr("'a' is given more than once"));
  EXPECT_THAT(publish(R"({"type":"T","payload":[1e999]})"),
              HasSubstr("400 invalid-parameter: the number 1e999 is beyond what a double can have"));
  EXPECT_THAT(publish(R"({"type":"T","id":"a b"})"), HasSubstr("400"));
  EXPECT_THAT(publish(R"({"events":[]})"), HasSubstr("list of 1 to 1000"));
  EXPECT_THAT(publish(R"({"events":[1]})"), HasSubstr("events[0] must be an object"));
  EXPECT_THAT(publish(R"({"events":[{"tpye":"T"}]})"), HasSubstr("events[0].type?"));
  EXPECT_THAT(publish(R"({"type":"T","events":[{"type":"T"}]})"), HasSubstr("no member 'type'"));
  EXPECT_THAT(publish(R"({"type":")" + std::string(200, 'x') + R"("})"), HasSubstr("400"));
  EXPECT_THAT(publish(R"({"type":"T","payloadJson":")" + std::string(1'100'000, '1') + R"("})"),
              HasSubstr("400"));
}

}  // namespace
}  // namespace postrider::api
