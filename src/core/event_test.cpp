// SPDX-License-Identifier: Apache-2.0
#include "postrider/event.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <thread>

#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

enum class UserEvents { user_created, user_deleted };
constexpr std::string_view event_name(UserEvents e) {
  return e == UserEvents::user_created ? "UserCreated" : "UserDeleted";
}
enum class Aggregates { user };
constexpr std::string_view aggregate_name(Aggregates) {
  return "User";
}

enum class Nameless { value };
static_assert(!std::is_convertible_v<Nameless, EventType>);
static_assert(!std::is_convertible_v<UserEvents, AggregateType>);
static_assert(!std::is_convertible_v<int, EventType>);

std::string refusal_of_event(EventBuilder& builder) {
  try {
    (void)builder.build();
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_FALSE(error.retryable());
    return error.what();
  }
}

/// `change` is applied to a builder that would be accepted otherwise.
template <class F>
std::string refusal_of(F&& change) {
  EventBuilder builder = Event::builder("T");
  builder.json("{}");
  try {
    change(builder);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return refusal_of_event(builder);
}

std::string repeat(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(EventType, ComesFromStringsAndEnums) {
  EXPECT_EQ(EventType("A").name(), "A");
  EXPECT_EQ(EventType(std::string("A")), EventType(std::string_view("A")));
  EXPECT_EQ(EventType(UserEvents::user_deleted), EventType("UserDeleted"));
  EXPECT_EQ(AggregateType(Aggregates::user), AggregateType("User"));
  const Event event =
      Event::builder(UserEvents::user_created).aggregate(Aggregates::user, "7").json("1").build();
  EXPECT_EQ(event.type(), "UserCreated");
  EXPECT_EQ(event.aggregate_type(), "User");
  EXPECT_EQ(event.aggregate_id(), "7");
}

TEST(Event, ShortFormHasDefaults) {
  const TimePoint before = Clock::system().now();
  const Event event = Event::json("UserCreated", R"({"name":"Ada"})");
  EXPECT_EQ(event.id().view().size(), 26U);
  EXPECT_GE(event.occurred_at(), before);
  EXPECT_LE(event.occurred_at(), Clock::system().now());
  EXPECT_EQ(event.payload(), R"({"name":"Ada"})");
  EXPECT_EQ(event.payload_kind(), PayloadKind::json);
  EXPECT_TRUE(event.aggregate_type().empty() && event.aggregate_id().empty() && event.tenant_id().empty());
  EXPECT_TRUE(event.ordering_key().empty() && event.headers().empty() && event.headers_json().empty());
  EXPECT_FALSE(event.deliver_at().has_value());
  EXPECT_NE(event.id(), Event::json("UserCreated", "{}").id());
}

TEST(Event, KeepsEveryField) {
  const TimePoint then{1'600'000'000s};
  const Event event = Event::builder("T")
                          .id(EventId("my-id"))
                          .occurred_at(then)
                          .aggregate_type("Order")
                          .aggregate_id("o-1")
                          .tenant("t-1")
                          .ordering_key("k")
                          .deliver_at(then + 1h)
                          .header("b", "2")
                          .header("a", "old")
                          .header("a", "1")
                          .bytes(std::string("\0\xFF", 2))
                          .build();
  EXPECT_EQ(event.id().view(), "my-id");
  EXPECT_EQ(event.occurred_at(), then);
  EXPECT_EQ(event.aggregate_type(), "Order");
  EXPECT_EQ(event.aggregate_id(), "o-1");
  EXPECT_EQ(event.tenant_id(), "t-1");
  EXPECT_EQ(event.ordering_key(), "k");
  EXPECT_EQ(event.deliver_at(), then + 1h);
  EXPECT_EQ(event.headers(), (Headers{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(event.headers_json(), R"({"a":"1","b":"2"})");
  EXPECT_EQ(event.payload_kind(), PayloadKind::bytes);
  ASSERT_EQ(event.payload_bytes().size(), 2U);
  EXPECT_EQ(event.payload_bytes()[1], std::byte{0xFF});
}

TEST(Event, PayloadIsMovedInAndSharedByCopies) {
  std::string payload = "\"" + std::string(100'000, 'x') + "\"";
  const char* const where = payload.data();
  const Event event = Event::json("T", std::move(payload));
  EXPECT_EQ(event.payload().data(), where) << "the payload was copied";
  const Event copy = event;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(copy.payload().data(), where);
}

TEST(Event, PayloadOutlivesTheOriginal) {
  std::optional<Event> first = Event::json("T", "[1,2]");
  const Event copy = *first;
  const std::string_view payload = first->payload();
  first.reset();
  EXPECT_EQ(payload, "[1,2]");
}

TEST(Event, PayloadOfOneMebibyteIsAcceptedAndOneByteMoreIsNot) {
  ASSERT_EQ(EventLimits::payload_bytes, 1'048'576U);
  EXPECT_EQ(Event::bytes("T", std::string(1'048'576, '\0')).payload().size(), 1'048'576U);
  EXPECT_EQ(Event::json("T", "\"" + std::string(1'048'574, 'x') + "\"").payload().size(), 1'048'576U);
  const std::string expected =
      "postrider: event refused: payload: it has 1048577 bytes, at most 1048576 are allowed. Hint: store it "
      "elsewhere "
      "and publish where it is";
  EXPECT_EQ(refusal_of_event(Event::builder("T").bytes(std::string(1'048'577, '\0'))), expected);
  EXPECT_EQ(refusal_of_event(Event::builder("T").json("\"" + std::string(1'048'575, 'x') + "\"")), expected);
}

TEST(Event, NeedsExactlyOnePayload) {
  EventBuilder none = Event::builder("T");
  EXPECT_EQ(refusal_of_event(none),
            "postrider: event refused: payload: neither json() nor bytes() was given. Hint: give exactly one "
            "of them");
  EXPECT_EQ(refusal_of_event(Event::builder("T").json("{}").bytes("x")),
            "postrider: event refused: payload: both json() and bytes() were given. Hint: give exactly one "
            "of them");
  EXPECT_EQ(Event::bytes("T", "").payload(), "") << "no bytes are a payload too";
}

TEST(Event, TypeMustHaveOneTo128Characters) {
  EXPECT_EQ(
      refusal_of_event(Event::builder("").json("{}")),
      "postrider: event refused: type: it is empty. Hint: name what happened, for example \"UserCreated\"");
  EXPECT_EQ(refusal_of_event(Event::builder(std::string(129, 'x')).json("{}")),
            "postrider: event refused: type: it has 129 characters, at most 128 are allowed");
  EXPECT_EQ(Event::json(repeat("\u00E4", 128), "{}").type().size(), 256U) << "characters count, not bytes";
}

TEST(Event, TextFieldsHaveTheirBoundsInCharacters) {
  struct Field {
    const char* name;
    std::size_t limit;
    EventBuilder& (*set)(EventBuilder&, std::string);
  };
  const Field fields[] = {
      {"aggregate type", 64,
       [](EventBuilder& b, std::string v) -> EventBuilder& { return b.aggregate_type(v); }},
      {"aggregate id", 128,
       [](EventBuilder& b, std::string v) -> EventBuilder& { return b.aggregate_id(v); }},
      {"tenant id", 64, [](EventBuilder& b, std::string v) -> EventBuilder& { return b.tenant(v); }},
      {"ordering key", 200,
       [](EventBuilder& b, std::string v) -> EventBuilder& { return b.ordering_key(v); }},
  };
  for (const Field& field : fields) {
    const std::string refused = "postrider: event refused: " + std::string(field.name) + ": ";
    const auto with = [&](const std::string& value) {
      return refusal_of([&](EventBuilder& builder) { field.set(builder, value); });
    };
    EXPECT_EQ(with(repeat("\U0001F600", field.limit)), "accepted") << field.name;
    EXPECT_EQ(with(repeat("\U0001F600", field.limit + 1)),
              refused + "it has " + std::to_string(field.limit + 1) + " characters, at most " +
                  std::to_string(field.limit) + " are allowed");
    EXPECT_EQ(
        with(std::string("ab\0c", 4)),
        refused +
            "it has a NUL character at byte 2. Hint: databases cannot store it as text; put binary data "
            "into the payload with bytes()");
    EXPECT_EQ(with("\xC3("),
              refused +
                  "it is not valid UTF-8. Hint: convert it to UTF-8, or put binary data into the "
                  "payload with bytes()");
  }
}

TEST(Event, HeadersHaveTheirBounds) {
  const auto with = [](std::string name, std::string value) {
    return refusal_of([&](EventBuilder& b) { b.header(std::move(name), std::move(value)); });
  };
  EXPECT_EQ(with("", "x"),
            "postrider: event refused: header name: it is empty. Hint: give every header a name");
  EXPECT_EQ(with(repeat("\u00E4", 128), ""), "accepted");
  EXPECT_EQ(with(std::string(129, 'n'), ""), "postrider: event refused: header name '" +
                                                 std::string(128, 'n') +
                                                 "': it has 129 characters, at most 128 are allowed");
  EXPECT_EQ(with("n", std::string(4096, 'v')), "accepted");
  EXPECT_EQ(with("n", std::string(4097, 'v')),
            "postrider: event refused: header 'n': its value has 4097 bytes, at most 4096 are allowed. Hint: "
            "put it "
            "into the payload");
  EXPECT_THAT(with("n", std::string("\0", 1)),
              StartsWith("postrider: event refused: header 'n': it has a NUL"));
  EXPECT_THAT(with("n", "\xFF"), StartsWith("postrider: event refused: header 'n': it is not valid UTF-8"));
  EXPECT_THAT(with("\xFF", "v"),
              StartsWith("postrider: event refused: header name '\uFFFD': it is not valid UTF-8"));

  Headers many;
  for (int i = 0; i < 64; ++i) many["h" + std::to_string(i)] = "v";
  EXPECT_EQ(refusal_of([&](EventBuilder& b) { b.headers(many); }), "accepted");
  many["one more"] = "v";
  EXPECT_EQ(refusal_of([&](EventBuilder& b) { b.headers(many); }),
            "postrider: event refused: headers: there are 65, at most 64 are allowed. Hint: put them into "
            "the payload");
}

TEST(Event, TimesMustBeStorable) {
  const auto occurred = [](TimePoint t) { return refusal_of([=](EventBuilder& b) { b.occurred_at(t); }); };
  EXPECT_EQ(occurred(EventLimits::earliest), "accepted");
  EXPECT_EQ(occurred(EventLimits::latest), "accepted");
  EXPECT_EQ(
      occurred(TimePoint::max()),
      "postrider: event refused: occurred_at: it is not from 1000-01-01T00:00:00Z to 9999-12-31T00:00:00Z. "
      "Hint: not every database stores other times");
  EXPECT_THAT(refusal_of([](EventBuilder& b) { b.deliver_at(TimePoint::min()); }),
              HasSubstr("refused: deliver_at"));
}

TEST(Event, MalformedJsonIsReportedWithItsPosition) {
  EXPECT_EQ(refusal_of_event(Event::builder("T").json("{\n  \"a\": tru\n}")),
            "postrider: event refused: payload: it is not valid JSON, at byte 9 (line 2, column 8): "
            "unexpected 't'. "
            "Hint: send anything but JSON as bytes: EventBuilder::bytes(), payloadBase64 of the REST API");
}

TEST(EventBuilder, IsSpentAfterBuilding) {
  EventBuilder builder = Event::builder("T");
  EXPECT_EQ(refusal_of_event(builder.json("{}")), "accepted");
  const std::string spent =
      "postrider: event refused: builder: it has built its event already, or was moved from. Hint: make a "
      "new builder "
      "for every event";
  EXPECT_EQ(refusal_of_event(builder), spent);
  EXPECT_THROW(builder.tenant("x"), Error);
  EventBuilder failing = Event::builder("");
  EXPECT_NE(refusal_of_event(failing.json("{}")), "accepted");
  EXPECT_EQ(refusal_of_event(failing), spent);
  EventBuilder source = Event::builder("T");
  EventBuilder target = std::move(source);
  EXPECT_THROW(source.json("{}"), Error);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(refusal_of_event(target.json("{}")), "accepted");
}

TEST(EventBuilder, HeadersComeBackFromTheirJson) {
  const Event event = Event::builder("T").header("k\"\u00E4", "line\n\x01\U0001F600").json("{}").build();
  const Event again = Event::builder("T").headers_json(event.headers_json()).json("{}").build();
  EXPECT_EQ(again.headers(), event.headers());
  EXPECT_EQ(again.headers_json(), event.headers_json());
  EXPECT_TRUE(Event::builder("T").headers_json("").json("{}").build().headers().empty());
}

TEST(EventBuilder, RefusesHeadersThatAreNoObjectOfStrings) {
  const auto with = [](std::string_view text) {
    return refusal_of([&](EventBuilder& builder) { builder.headers_json(text); });
  };
  const std::string hint = ". Hint: they must be one JSON object of strings, like {\"trace\":\"abc\"}";
  EXPECT_EQ(with("[]"), "postrider: headers cannot be read: this is no object" + hint);
  EXPECT_EQ(with("{\"a\":1}"), "postrider: headers cannot be read: the value of 'a' is no string" + hint);
  EXPECT_EQ(with("{\"a\":{}}"), "postrider: headers cannot be read: the value of 'a' is no string" + hint);
  EXPECT_EQ(
      with("{\"a\""),
      "postrider: headers cannot be read: at byte 4 (line 1, column 5): the text ends too early" + hint);
  EXPECT_EQ(with("{\"a\":\"b\"} x"),
            "postrider: headers cannot be read: at byte 10 (line 1, column 11): unexpected 'x' after the end "
            "of the value" +
                hint);
}

RC_GTEST_PROP(EventBuilder, AnyHeadersSurviveTheirJson, ()) {
  const auto raw = *rc::gen::container<std::map<std::string, std::string>>(rc::gen::arbitrary<std::string>(),
                                                                           rc::gen::arbitrary<std::string>());
  Headers headers;
  for (const auto& [name, value] : raw) {
    if (!name.empty() && headers.size() < EventLimits::headers)
      headers[utf8_repaired(name)] = utf8_repaired(value);
  }
  const Event event = Event::builder("T").headers(headers).json("{}").build();
  const Event again = Event::builder("T").headers_json(event.headers_json()).json("{}").build();
  RC_ASSERT(again.headers() == headers);
}

TEST(Event, IsReadByManyThreads) {
  const Event event = Event::builder("T").header("a", "b").json("[1]").build();
  std::vector<std::jthread> pool;
  for (int t = 0; t < 4; ++t) {
    pool.emplace_back([event] {
      for (int i = 0; i < 1000; ++i) {
        const Event copy = event;  // NOLINT(performance-unnecessary-copy-initialization)
        ASSERT_EQ(copy.payload(), "[1]");
      }
    });
  }
}

}  // namespace
}  // namespace postrider
