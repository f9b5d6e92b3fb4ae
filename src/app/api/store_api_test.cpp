// SPDX-License-Identifier: Apache-2.0
#include "app/api/store_api.hpp"

#include "app/api/api_fixture.hpp"

namespace postrider::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// As a browser's encodeURIComponent.
std::string encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
      result += c;
    } else {
      result += '%';
      result += digits[byte >> 4U];
      result += digits[byte & 15U];
    }
  }
  return result;
}

class StoreApiTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    store_.emplace(storage());
    use(store_routes(*store_));
  }
  /// What the suite's adapter does.
  json::array read(const std::string& query, const std::string& options = {}) {
    const http::Response answer =
        ask(http::Method::get,
            "/read?query=" + encoded(query) + (options.empty() ? "" : "&options=" + encoded(options)));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.status == 200 ? json::parse(answer.body).as_array() : json::array{};
  }
  std::vector<std::int64_t> positions(const std::string& query, const std::string& options = {}) {
    std::vector<std::int64_t> all;
    for (const json::value& one : read(query, options)) all.push_back(one.at("position").as_int64());
    return all;
  }
  void fill() {
    post("/append", R"({"events":[{"type":"A","tags":["t1","t2"],"data":"{ \"n\": 1 }"},
                                  {"type":"B","tags":["t1"],"data":"no JSON"},
                                  {"type":"A","tags":["user=7"],"data":"3"}]})");
  }
  std::optional<EventStore> store_;
};
POSTRIDER_FOR_EACH_BACKEND(StoreApiTest);

TEST_P(StoreApiTest, ReadsInTheShapeOfTheDcbSuite) {
  EXPECT_THAT(read(R"({"items":[]})"), IsEmpty());
  fill();
  const json::array all = read(R"({"items":[]})");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].at("type"), "A");
  EXPECT_EQ(all[0].at("tags"), (json::array{"t1", "t2"}));
  EXPECT_EQ(all[0].at("data"), "{ \"n\": 1 }") << "a text, byte for byte";
  EXPECT_EQ(all[0].at("position"), 1);
  EXPECT_EQ(all[1].at("data"), "no JSON");
  EXPECT_EQ(all[2].at("tags"), (json::array{"user=7"}));
  EXPECT_THAT(positions(R"({"items":[{"types":["A"]}]})"), ElementsAre(1, 3));
  EXPECT_THAT(positions(R"({"items":[{"types":["A"],"tags":["t1"]},{"tags":["user=7"]}]})"),
              ElementsAre(1, 3));
  EXPECT_THAT(positions(R"({"items":[{"types":[],"tags":["t1"]}]})"), ElementsAre(1, 2));
  EXPECT_THAT(positions(R"({"items":[{}]})"), ElementsAre(1, 2, 3));
  EXPECT_THAT(positions("{}", R"({"backwards":true,"limit":1})"), ElementsAre(3));
  EXPECT_THAT(positions("{}", R"({"from":2,"limit":1})"), ElementsAre(2));
  EXPECT_THAT(positions("{}", R"({"from":0,"limit":1})"), ElementsAre(1));
  EXPECT_THAT(positions("{}", R"({"after":2})"), ElementsAre(3));
  EXPECT_THAT(positions("{}", R"({"limit":0})"), IsEmpty());
}

TEST_P(StoreApiTest, AppendsInTheShapeOfTheDcbSuite) {
  const json::object first = post("/append", R"({"events":[{"type":"A","tags":["t1"],"data":"1"}]})");
  EXPECT_EQ(first.at("appendConditionFailed"), false);
  EXPECT_TRUE(first.at("durationInMicroseconds").is_number());
  EXPECT_EQ(first.at("lastPosition"), 1);
  const std::string again =
      R"({"events":[{"type":"A","tags":["t1"],"data":"2"}],
          "condition":{"failIfEventsMatch":{"items":[{"types":["A"],"tags":["t1"]}]},"after":)";
  const json::object refused = post("/append", again + "0}}");
  EXPECT_EQ(refused.at("appendConditionFailed"), true) << "an answer, not an error: 200";
  EXPECT_EQ(refused.at("conflict").at("position"), 1);
  EXPECT_EQ(get("/api/store/head").at("head"), 1);
  EXPECT_EQ(post("/append", again + "1}}").at("appendConditionFailed"), false);
  EXPECT_EQ(post("/append", R"({"events":[{"type":"B"}],"condition":{"failIfEventsMatch":{"items":[]}}})")
                .at("appendConditionFailed"),
            true)
      << "without `after` any event counts";
  EXPECT_EQ(get("/api/store/head").at("head"), 2);
}

TEST_P(StoreApiTest, AConditionBeyondTheHeadIsRefusedAndNamesTheHead) {
  fill();
  for (const char* const after : {"4", "99999999", "9223372036854775807"}) {
    const std::string problem = post_problem(
        "/append",
        std::string(R"({"events":[{"type":"A"}],"condition":{"failIfEventsMatch":{"items":[]},"after":)") +
            after + "}}");
    EXPECT_THAT(problem, HasSubstr("400 invalid")) << after;
    EXPECT_THAT(problem, HasSubstr("the store's last position is 3")) << after;
  }
  EXPECT_EQ(get("/api/store/head").at("head"), 3);
}

TEST_P(StoreApiTest, WhatCannotBeMeantIsNamed) {
  const auto append = [&](const char* body) { return post_problem("/append", body); };
  EXPECT_THAT(append("{}"), HasSubstr("events is missing"));
  EXPECT_THAT(append(R"({"events":[]})"), HasSubstr("400 invalid"));
  EXPECT_THAT(append(R"({"events":[{"tags":[]}]})"), HasSubstr("events[0].type is missing"));
  EXPECT_THAT(append(R"({"events":[{"type":"A"}],"condition":{"after":1}})"),
              HasSubstr("failIfEventsMatch is missing"));
  EXPECT_THAT(append(R"({"events":[{"type":"A"}],"condition":{"failIfEventMatch":{}}})"),
              HasSubstr("did you mean condition.failIfEventsMatch?"));
  EXPECT_THAT(get_problem("/read?query=" + encoded("{")), HasSubstr("query is not JSON"));
  EXPECT_THAT(get_problem("/read?query=" + encoded(R"({"items":1})")),
              HasSubstr("query.items must be a list"));
  EXPECT_THAT(get_problem("/read?options=" + encoded(R"({"form":1})")),
              HasSubstr("did you mean options.from?"));
  EXPECT_THAT(get_problem("/read?query=" + encoded(R"({"items":[{"tags":[""]}]})")), HasSubstr("400"));
}

TEST_P(StoreApiTest, TheQueryTesterGoesPageByPageFromEitherEnd) {
  for (int i = 0; i < 3; ++i) fill();
  EXPECT_THAT(pages("/api/store/events?type=A&limit=2", "events", "position"),
              ElementsAre("1", "3", "4", "6", "7", "9"));
  EXPECT_THAT(pages("/api/store/events?type=A&tag=t1&limit=1&backwards=true", "events", "position"),
              ElementsAre("7", "4", "1"));
  EXPECT_THAT(pages("/api/store/events?after=7", "events", "position"), ElementsAre("8", "9"));
  EXPECT_THAT(pages("/api/store/events?tag=" + encoded("user=8"), "events", "position"), IsEmpty());
  const json::object page = get("/api/store/events?limit=1");
  EXPECT_EQ(page.at("head"), 9);
  EXPECT_EQ(page.at("events").at(0).at("tags"), (json::array{"t1=", "t2="})) << "as they are stored";
  EXPECT_EQ(page.at("events").at(0).at("payload"), "{ \"n\": 1 }");
  EXPECT_EQ(get("/api/store/events?limit=2").at("events").at(1).at("payloadBase64"), "bm8gSlNPTg==");
}

}  // namespace
}  // namespace postrider::api
