// SPDX-License-Identifier: Apache-2.0
// The whole of a message is tested with each sink (tests/sinks); here: what cannot go everywhere.
#include "postrider/cloud_events.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <limits>

#include "postrider/error.hpp"

namespace postrider {
namespace {

CloudEvent filled(const Event& event, CloudEventsMode mode = CloudEventsMode::binary) {
  CloudEvent out;
  out.fill({.event = &event}, {.mode = mode, .source = "/s"});
  return out;
}

std::string attribute(const CloudEvent& event, std::string_view name) {
  for (const auto& one : event.attributes()) {
    if (one.name == name) return std::string(one.value);
  }
  return "(none)";
}

TEST(CloudEvents, HeadersThatCannotBeHeadersOutsideStayTogether) {
  for (const auto& [name, value] : Headers{{"ce-id", "forged"},
                                           {"CE_type", "forged"},
                                           {"Content-Length", "7"},
                                           {"webhook-signature", "forged"},
                                           {"Nats-Msg-Id", "forged"},
                                           {"two words", "v"},
                                           {"x-umlaut", "ü"},
                                           {"x-lines", "a\r\nevil: yes"},
                                           {"x-ends", " v"}}) {
    const Event event = Event::builder("T").header(name, value).header("x-good", "yes").json("{}").build();
    const CloudEvent out = filled(event);
    ASSERT_EQ(out.headers().size(), 1U) << name;
    EXPECT_EQ(out.headers().front().name, "x-good");
    EXPECT_EQ(attribute(out, "eventheaders"), event.headers_json()) << "nothing is lost";
  }
}

TEST(CloudEvents, WithoutSuchHeadersThereIsNoSuchAttribute) {
  const Event event = Event::builder("T").header("x-good", "yes").json("{}").build();
  EXPECT_EQ(attribute(filled(event), "eventheaders"), "(none)");
}

TEST(CloudEvents, IsFilledAgainWithoutATraceOfTheLast) {
  const Event full = Event::builder("T").aggregate("A", "1").tenant("t").header("h", "v").json("{}").build();
  const Event bare = Event::json("U", "[]");
  CloudEvent out;
  out.fill({.event = &full, .key = "k"}, {});
  out.fill({.event = &bare}, {});
  EXPECT_EQ(out.attributes().size(), 5U);
  EXPECT_TRUE(out.headers().empty());
  EXPECT_TRUE(out.key().empty());
  EXPECT_EQ(out.body(), "[]");
}

TEST(CloudEvents, TagsAreJsonWhateverIsInThem) {
  const Tags tags{{"a", "1"}, {"k=\\", "v"}, {"q\"", "\n\"\\"}, {"z", ""}};
  const StoredEvent stored(
      {.position = Position{42}, .event = Event::json("T", "{}"), .tags = tags, .correlation_id = "c"});
  CloudEvent out;
  for (int i = 0; i < 2; ++i) {
    out.fill({.event = &stored.event(), .stored = &stored, .topic = "t", .epoch = Epoch{7}}, {});
    const boost::json::value parsed = boost::json::parse(attribute(out, "tags"));
    Tags found;
    for (const auto& one : parsed.as_array())
      found.push_back(Tag::decode(std::string_view(one.as_string().data(), one.as_string().size())));
    EXPECT_EQ(found, tags);
    EXPECT_EQ(attribute(out, "sequence"), "0000000000000000042");
    EXPECT_EQ(attribute(out, "epoch"), "7");
  }
}

TEST(CloudEvents, TheLargestPositionKeepsItsWidth) {
  const StoredEvent stored({.position = Position{std::numeric_limits<std::int64_t>::max()},
                            .event = Event::json("T", "{}"),
                            .stored_at = TimePoint{}});
  CloudEvent out;
  out.fill({.event = &stored.event(), .stored = &stored, .topic = "t"}, {});
  EXPECT_EQ(attribute(out, "sequence"), "9223372036854775807");
  EXPECT_EQ(attribute(out, "tags"), "(none)");
}

TEST(CloudEvents, StructuredTextIsJsonWhateverTheTextsAre) {
  const Event event =
      Event::builder("\"T\"\\\n").aggregate("A", "\x01\x7f \"").json("{\"a\" : [1,\n2]}").build();
  const CloudEvent out = filled(event, CloudEventsMode::structured);
  const boost::json::value parsed = boost::json::parse(out.body());
  EXPECT_EQ(parsed.at("type").as_string(), "\"T\"\\\n");
  EXPECT_EQ(parsed.at("data").at("a").as_array().size(), 2U);
}

TEST(CloudEvents, Base64OfEveryLength) {
  for (const auto& [bytes, text] : std::map<std::string, std::string>{
           {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}}) {
    const CloudEvent out = filled(Event::bytes("T", bytes), CloudEventsMode::structured);
    EXPECT_EQ(boost::json::parse(out.body()).at("data_base64").as_string(), text);
  }
}

TEST(CloudEvents, HeaderValuesArePercentEncoded) {
  EXPECT_EQ(cloud_events_header_value("Euro € 😀\"%\n~!"), "Euro%20%E2%82%AC%20%F0%9F%98%80%22%25%0A~!");
}

TEST(CloudEvents, RefusesWhatIsNoSource) {
  for (const std::string source : {"", "a b", "a\nb", "<x>", "ü"}) {
    EXPECT_THROW(CloudEventsOptions{.source = source}.check(), Error) << source;
  }
  CloudEventsOptions{.source = "https://example.org/shop?x=1#y"}.check();
}

}  // namespace
}  // namespace postrider
