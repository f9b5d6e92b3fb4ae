// SPDX-License-Identifier: Apache-2.0
// The API over real sockets, on every database.
#include "app/api/event_log_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <memory>
#include <set>
#include <thread>

#include "app/api/event_log_api_fixture.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::HttpAnswer;
using test::SocketClient;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

POSTRIDER_FOR_EACH_BACKEND(EventLogApiTest);

TEST_P(EventLogApiTest, AnEventGoesInAndComesOutAsItWas) {
  const std::string sent = event(
      R"(,"step":"Booked","details":"Zürich \"quoted\" \n🎯","targetSystem":"T","originatingSystem":"O",)"
      R"("timestamp":"2026-06-01T12:15:30.123456+02:00","userId":"ada","idempotencyKey":"k","price":1.5,)"
      R"("nested":{"list":[1,null,"x"]})");
  const HttpAnswer created = ask("POST", "/v1/events", sent);
  EXPECT_EQ(created.status, 201);
  const std::string id(object(created).at("id").as_string().c_str());
  EXPECT_EQ(created.header("Location"), "/v1/events/" + id);
  json::object back = object(ask("GET", "/v1/events/" + id));
  EXPECT_TRUE(back.contains("receivedAt"));
  back.erase("receivedAt");
  back.erase("id");
  json::object expected = json::parse(sent).as_object();
  expected["timestamp"] = "2026-06-01T10:15:30.123456Z";
  EXPECT_EQ(back, expected);
}

TEST_P(EventLogApiTest, HazardL3ARepeatReturnsTheFirstId) {
  const HttpAnswer first = ask("POST", "/v1/events", event(R"(,"idempotencyKey":"k")"));
  const HttpAnswer repeat = ask("POST", "/v1/events", event(R"(,"idempotencyKey":"k","step":"other")"));
  EXPECT_EQ(repeat.status, 200);
  EXPECT_EQ(object(repeat).at("id"), object(first).at("id"));
  EXPECT_EQ(object(repeat).at("status"), "duplicate");
  const HttpAnswer by_header = ask("POST", "/v1/events", event(), "Idempotency-Key: k\r\n");
  EXPECT_EQ(object(by_header).at("id"), object(first).at("id")) << "the key may come as a header";
  EXPECT_EQ(ask("POST", "/v1/events", event(R"(,"idempotencyKey":"j")"), "Idempotency-Key: k\r\n").status,
            422);
  EXPECT_EQ(rows(), 1);
}

TEST_P(EventLogApiTest, AKeyForAWholeBatchIsRefused) {
  const HttpAnswer answer = ask("POST", "/v1/events/batch", "[" + event() + "]", "Idempotency-Key: k\r\n");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(object(answer).at("code"), "idempotency-key-header");
  EXPECT_EQ(rows(), 0);
}

TEST_P(EventLogApiTest, MembersThatTheApiGivesItselfAreRefused) {
  const HttpAnswer answer = ask("POST", "/v1/events", event(R"(,"id":"7","receivedAt":"x")"));
  EXPECT_EQ(answer.status, 422);
  const json::object problem = object(answer);
  const json::array& errors = problem.at("errors").as_array();
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].at("field"), "/id");
  EXPECT_EQ(errors[1].at("field"), "/receivedAt");
  EXPECT_EQ(errors[1].at("code"), "reserved");
  EXPECT_EQ(rows(), 0);
}

TEST_P(EventLogApiTest, HazardL2OneBadItemDoesNotRefuseItsNeighbours) {
  const std::string batch = "[" + event(R"(,"idempotencyKey":"k1","step":"1")") +
                            R"(,{"applicationId":"a"},)" + event(R"(,"step":"2","timestamp":"yesterday")") +
                            ",null," + event(R"(,"idempotencyKey":"k1")") + "," + event(R"(,"step":"3")") +
                            "]";
  const HttpAnswer answer = ask("POST", "/v1/events/batch", batch);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::object result = object(answer);
  EXPECT_EQ(result.at("created"), 2);
  EXPECT_EQ(result.at("duplicates"), 1);
  EXPECT_EQ(result.at("rejected"), 3);
  const json::array& results = result.at("results").as_array();
  ASSERT_EQ(results.size(), 6U);
  std::string statuses;
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].at("index"), i);
    statuses += results[i].at("status").as_string()[0];
  }
  EXPECT_EQ(statuses, "crrrdc");
  EXPECT_EQ(results[1].at("errors").as_array().size(), 2U) << "all that is wrong is told";
  EXPECT_EQ(results[2].at("errors").at(0).at("field"), "/timestamp");
  EXPECT_EQ(results[4].at("id"), results[0].at("id"));
  EXPECT_THAT(found("?order=asc"), SizeIs(2));
}

TEST_P(EventLogApiTest, HazardL2OneItemThatIsTooDeepDoesNotRefuseItsNeighbours) {
  const auto nested = [](std::size_t levels) {
    return event(R"(,"x":)" + std::string(levels, '[') + std::string(levels, ']'));
  };
  const HttpAnswer answer =
      ask("POST", "/v1/events/batch", "[" + event() + "," + nested(32) + "," + nested(31) + "]");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::array results = object(answer).at("results").as_array();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].at("status"), "created");
  EXPECT_EQ(results[1].at("errors").at(0).at("code"), "too-deep");
  EXPECT_EQ(results[2].at("status"), "created") << answer.body;
  EXPECT_EQ(ask("POST", "/v1/events", nested(31)).status, 201);
  EXPECT_EQ(ask("POST", "/v1/events", nested(32)).status, 400);
}

TEST_P(EventLogApiTest, ABatchMayBeAnObjectAndMayBeEmpty) {
  EXPECT_EQ(object(ask("POST", "/v1/events/batch", R"({"events":[)" + event() + "]}")).at("created"), 1);
  EXPECT_EQ(ask("POST", "/v1/events/batch", "[]").body,
            R"({"created":0,"duplicates":0,"rejected":0,"results":[]})");
  EXPECT_EQ(ask("POST", "/v1/events/batch", "{}").status, 422);
  EXPECT_EQ(ask("POST", "/v1/events/batch", R"("x")").status, 422);
}

TEST_P(EventLogApiTest, ALargeBatchIsStoredInOrderAndATooLargeOneRefused) {
  std::string batch = "[";
  for (int i = 0; i < 1000; ++i) {
    batch += (i > 0 ? "," : "") + event(R"(,"step":")" + std::to_string(i) + R"(","idempotencyKey":"k)" +
                                        std::to_string(i) + R"(","timestamp":"2026-06-01T10:15:30Z")");
  }
  EXPECT_EQ(object(ask("POST", "/v1/events/batch", batch + "]")).at("created"), 1000);
  const std::vector<std::string> steps = found("?limit=1000");
  ASSERT_THAT(steps, SizeIs(1000));
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], std::to_string(i));
  const HttpAnswer refused = ask("POST", "/v1/events/batch", batch + "," + event() + "]");
  EXPECT_EQ(refused.status, 413) << "which tells a client to split";
  EXPECT_EQ(object(refused).at("code"), "too-many-events");
  EXPECT_EQ(rows(), 1000);
}

TEST_P(EventLogApiTest, BadJsonIsToldWithItsPlace) {
  const HttpAnswer answer = ask("POST", "/v1/events", "{\n \"a\": tru }");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
  EXPECT_EQ(object(answer).at("code"), "invalid-json");
  EXPECT_THAT(answer.body, HasSubstr("line 2"));
  std::string deep(300,
                   '[');  // beyond what a batch is read to, so that one event can be told from the others
  deep += std::string(300, ']');
  for (const std::string& body : {std::string(), std::string("{"), std::string("{}x"), deep,
                                  std::string("\"\xff\""), std::string("{\"a\":1e}"), std::string("nul")}) {
    EXPECT_EQ(ask("POST", "/v1/events", body).status, 400) << body;
    EXPECT_EQ(ask("POST", "/v1/events/batch", body).status, 400) << body;
  }
}

TEST_P(EventLogApiTest, EachFieldIsChecked) {
  const auto codes = [&](const std::string& body) {
    const HttpAnswer answer = ask("POST", "/v1/events", body);
    EXPECT_EQ(answer.status, 422) << body;
    std::string text;
    const json::object result = object(answer);
    for (const json::value& error : result.at("errors").as_array()) {
      text +=
          std::string(error.at("field").as_string()) + ":" + std::string(error.at("code").as_string()) + " ";
    }
    return text;
  };
  EXPECT_EQ(codes("{}"), "/applicationId:required /processName:required /processStatus:required ");
  EXPECT_EQ(codes("5"), ":type ");
  EXPECT_EQ(codes(event(R"(,"step":5,"userId":["x"])")), "/step:type /userId:type ");
  EXPECT_EQ(codes(event(R"(,"applicationId":"")")), "/applicationId:required ");
  EXPECT_EQ(codes(event(R"(,"applicationId":7)")), "/applicationId:type ") << "and not missing as well";
  EXPECT_EQ(codes(event(R"(,"details":"a\u0000b")")), "/details:nul ");
  EXPECT_EQ(codes(event(R"(,"timestamp":1780000000)")), "/timestamp:time ");
  EXPECT_EQ(codes(event(R"(,"timestamp":"2026-06-01T10:15:30")")), "/timestamp:time ");
  const auto text = [](std::size_t count, const std::string& of) {
    std::string result;
    for (std::size_t i = 0; i < count; ++i) result += of;
    return result;
  };
  EXPECT_EQ(codes(event(R"(,"step":")" + text(201, "ü") + "\"")), "/step:too-long ");
  EXPECT_EQ(codes(event(R"(,"details":")" + text(65'537, "x") + "\"")), "/details:too-long ");
  EXPECT_EQ(codes(event(R"(,"extra":")" + text(70'000, "x") + "\"")), ":too-long ");
  EXPECT_EQ(rows(), 0);
  EXPECT_EQ(ask("POST", "/v1/events", event(R"(,"step":")" + text(200, "ü") + "\"")).status, 201);
  EXPECT_EQ(ask("POST", "/v1/events", event(R"(,"step":null,"timestamp":null)")).status, 201)
      << "null is none";
}

TEST_P(EventLogApiTest, AnEventThatTheLoggerTakesIsNeverTooLargeAlone) {
  std::string details;
  for (std::size_t i = 0; i < EntryLimits::details_bytes; ++i) details += R"(\u0001)";
  std::string extra;
  for (std::size_t i = 0; i < EntryLimits::extras_bytes / 12; ++i) extra += R"(\u0001\u0062)";
  const HttpAnswer created =
      ask("POST", "/v1/events", event(R"(,"details":")" + details + R"(","extra":")" + extra + "\""));
  ASSERT_EQ(created.status, 201) << created.body;
  const std::string id(object(created).at("id").as_string().c_str());
  EXPECT_EQ(object(ask("GET", "/v1/events/" + id)).at("details").as_string().size(),
            EntryLimits::details_bytes);
}

/// What a person reads, and what a program that looks for "12.5" in the text finds.
TEST_P(EventLogApiTest, NumbersComeBackAsOneWritesThem) {
  const HttpAnswer created = ask(
      "POST", "/v1/events", event(R"(,"price":12.5,"change":-0.001,"list":[0.0001,100000.25,1e3,7,1e300])"));
  ASSERT_EQ(created.status, 201) << created.body;
  const std::string id(object(created).at("id").as_string().c_str());
  EXPECT_THAT(ask("GET", "/v1/events/" + id).body,
              HasSubstr(R"("price":12.5,"change":-0.001,"list":[0.0001,100000.25,1000.0,7,1e+300])"));
  std::string many = "1e20";  // 21 digits when it is written out
  for (std::size_t i = 0; i < 10'000; ++i) many += ",1e20";
  EXPECT_EQ(ask("POST", "/v1/events", event(R"(,"many":[)" + many + "]")).status, 201)
      << "it has less than 64 KiB as it was sent";
}

TEST_P(EventLogApiTest, WrongRequestsAreRefused) {
  EXPECT_EQ(ask("GET", "/v1/event").status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/events").status, 405);
  EXPECT_EQ(ask("POST", "/v1/events", event(), "Content-Type: text/plain\r\n").status, 415);
  EXPECT_EQ(ask("POST", "/v1/events", std::string(1'100'000, ' ')).status, 413);
  const HttpAnswer batch = ask("GET", "/v1/events/batch");
  EXPECT_EQ(batch.status, 405);
  EXPECT_EQ(batch.header("Allow"), "POST");
  EXPECT_EQ(ask("GET", "/v1/events/0").status, 404);
  EXPECT_EQ(ask("GET", "/v1/events/x").status, 404);
  EXPECT_EQ(ask("GET", "/v1/events/99999999999999999999").status, 404);
}

TEST_P(EventLogApiTest, FindsAndPages) {
  std::string batch = "[";
  for (int i = 0; i < 10; ++i) {
    batch += (i > 0 ? "," : "") + event(R"(,"step":")" + std::to_string(i) + R"(","correlationId":")" +
                                        (i % 2 == 0 ? "even" : "odd") + R"(","details":"payment )" +
                                        (i < 5 ? "refused" : "taken") +
                                        R"(","timestamp":"2026-06-01T10:15:3)" + std::to_string(i) + R"(Z")");
  }
  ASSERT_EQ(ask("POST", "/v1/events/batch", batch + "]").status, 200);
  EXPECT_THAT(found("?correlationId=odd"), ElementsAre("1", "3", "5", "7", "9"));
  EXPECT_THAT(found("?applicationId=pet-resort-api&order=desc&limit=3"), ElementsAre("9", "8", "7"));
  EXPECT_THAT(found("?applicationId=none"), IsEmpty());
  EXPECT_THAT(found("?from=2026-06-01T10:15:33Z&to=2026-06-01T12:15:35%2B02:00"), ElementsAre("3", "4"));
  EXPECT_THAT(found("?text=Refused&correlationId=even"), ElementsAre("0", "2", "4"));
  EXPECT_THAT(found("?text=payment+taken&order=desc&limit=2"), ElementsAre("9", "8"));
  std::vector<std::string> all;
  std::string cursor;
  int pages = 0;
  do {
    const HttpAnswer page = ask("GET", "/v1/events?order=desc&limit=4" + cursor);
    ++pages;
    const json::object result = object(page);
    for (const json::value& one : result.at("events").as_array()) {
      all.emplace_back(one.at("step").as_string().c_str());
    }
    const json::value& next = result.at("nextCursor");
    cursor = next.is_null() ? "" : "&cursor=" + std::string(next.as_string().c_str());
  } while (!cursor.empty());
  EXPECT_THAT(all, ElementsAre("9", "8", "7", "6", "5", "4", "3", "2", "1", "0"));
  EXPECT_EQ(pages, 3);
}

TEST_P(EventLogApiTest, ParametersAreChecked) {
  for (const char* query : {"?foo=1",
                            "?limit=0",
                            "?limit=1001",
                            "?limit=x",
                            "?limit=1&limit=2",
                            "?from=yesterday",
                            "?from=2026-06-01T10:15:30+02:00",
                            "?from=2026-06-01T10:15:30Z&to=2026-06-01T10:15:29Z",
                            "?order=up",
                            "?cursor=",
                            "?cursor=xyz",
                            "?cursor=a1.2.3",
                            "?cursor=d1.2",
                            "?order=desc&cursor=a1.2",
                            "?cursor=a99999999999999999999.1",
                            "?cursor=a9223372036854775807.1",
                            "?cursor=a1.-1",
                            "?text=",
                            "?text=ab",
                            "?text=%2B%2B",
                            "?text=a+b+c+d+e+f+g+h+i+jjj+k",
                            "?correlationId=%FF",
                            "?correlationId=a%00b"}) {
    const HttpAnswer answer = ask("GET", std::string("/v1/events") + query);
    EXPECT_EQ(answer.status, 400) << query << answer.body;
    EXPECT_EQ(object(answer).at("code"), "invalid-parameter") << query;
  }
}

TEST_P(EventLogApiTest, SinglePostsOfManyClientsAreAllStoredOnce) {
  constexpr int clients = 16;
  constexpr int each = 25;
  std::vector<std::set<std::string>> ids(clients);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([&, i] {
        SocketClient one(server_->port());
        for (int n = 0; n < each; ++n) {
          const auto answer = one.ask("POST", "/v1/events",
                                      event(R"(,"idempotencyKey":")" + std::to_string(i * each + n) + "\""));
          ASSERT_TRUE(answer.has_value());
          ASSERT_EQ(answer->status, 201);
          ids[static_cast<std::size_t>(i)].insert(std::string(object(*answer).at("id").as_string()));
        }
      });
    }
  }
  std::set<std::string> all;
  for (const auto& of_client : ids) all.insert(of_client.begin(), of_client.end());
  EXPECT_THAT(all, SizeIs(clients * each)) << "everybody was told an id of his own";
  EXPECT_EQ(rows(), clients * each);
}

TEST_P(EventLogApiTest, WithoutTablesClientsAreToldToTryAgain) {
  database_->storage().migrate({.target = 0});
  const HttpAnswer one = ask("POST", "/v1/events", event());
  EXPECT_EQ(one.status, 503) << one.body;
  EXPECT_THAT(one.header("Retry-After"), Not(IsEmpty()));
  EXPECT_EQ(ask("POST", "/v1/events/batch", "[" + event() + "]").status, 503);
  EXPECT_EQ(ask("GET", "/v1/events").status, 503);
  database_->storage().migrate();
  EXPECT_EQ(ask("POST", "/v1/events", event()).status, 201) << "and it goes on by itself";
}

TEST_P(EventLogApiTest, StopUnderLoadStoresWhatItHasAnswered) {
  std::atomic<int> created{0};
  std::atomic<int> unanswered{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        SocketClient one(server_->port());
        for (int n = 0;; ++n) {
          const auto answer = one.ask(
              "POST", "/v1/events", event(R"(,"idempotencyKey":")" + std::to_string(i * 100'000 + n) + "\""));
          if (!answer.has_value()) {
            ++unanswered;
            return;
          }
          ASSERT_EQ(answer->status, 201);
          ++created;
          if (answer->header("Connection") == "close") return;
        }
      });
    }
    while (created < 40) std::this_thread::yield();
    EXPECT_TRUE(server_->stop(10s)) << "nobody had to be cut";
    api_->stop();
  }
  EXPECT_GE(rows(), created);
  EXPECT_LE(rows(), created + unanswered) << "more than was asked for";
}

}  // namespace
}  // namespace postrider::api
