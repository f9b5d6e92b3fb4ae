// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <limits>

#include "core/utf8.hpp"
#include "logger/entry_json.hpp"
#include "logger/packed_entry.hpp"
#include "postrider/error.hpp"

namespace postrider::logger {
namespace {

using Field = EventLogEntry::Field;
using ::testing::HasSubstr;
using ::testing::Not;

const TimePoint noon{std::chrono::milliseconds{1'780'308'930'123}};  // 2026-06-01T10:15:30.123Z

std::string json_of(const EventLogEntry& entry, const EntryDefaults& defaults = {}) {
  std::string text = "{";
  EXPECT_TRUE(append_members(text, entry.packed(), {noon, "key-1"}, defaults));
  return text + "}";
}

TEST(EventLogEntryTest, IsWrittenInTheOrderOfTheFileFormat) {
  EventLogEntry entry = EventLogEntry::process_start("CreateBooking", "BookingCreated");
  entry.user_id("system")
      .details("Booking BK-20260601-001 created for PET-001")
      .application_id("pet-resort-api")
      .correlation_id("a1b2c3d4")
      .originating_system("PET_RESORT")
      .target_system("PET_RESORT");
  EXPECT_EQ(json_of(entry),
            R"({"applicationId":"pet-resort-api","correlationId":"a1b2c3d4","processName":"CreateBooking",)"
            R"("processStatus":"PROCESS_START","step":"BookingCreated",)"
            R"("details":"Booking BK-20260601-001 created for PET-001","targetSystem":"PET_RESORT",)"
            R"("originatingSystem":"PET_RESORT","timestamp":"2026-06-01T10:15:30.123Z","userId":"system",)"
            R"("idempotencyKey":"key-1"})");
}

TEST(EventLogEntryTest, TheTypedMakersSayTheStatus) {
  EXPECT_EQ(EventLogEntry::process_start("p", "s").get(Field::process_status), "PROCESS_START");
  EXPECT_EQ(EventLogEntry::process_step("p", "s").get(Field::process_status), "IN_PROGRESS");
  EXPECT_EQ(EventLogEntry::process_end("p", "s").get(Field::process_status), "PROCESS_END");
  const EventLogEntry error = EventLogEntry::process_error("p", "s", "no room");
  EXPECT_EQ(error.get(Field::process_status), "ERROR");
  EXPECT_EQ(error.get(Field::details), "no room");
}

TEST(EventLogEntryTest, TheLastValueOfAFieldStands) {
  EventLogEntry entry;
  entry.step("first").user_id("u").step("a longer second").extra("n", 1).extra("m", 2).extra("n", "three");
  EXPECT_EQ(entry.get(Field::step), "a longer second");
  EXPECT_EQ(entry.get(Field::user_id), "u");
  EXPECT_EQ(entry.get_extra("n"), "three");
  EXPECT_EQ(entry.get_extra("m"), "2");
  EXPECT_EQ(entry.get_extra("x"), std::nullopt);
  const std::string json = json_of(entry);
  EXPECT_THAT(json, HasSubstr(R"("m":2,"n":"three",)"));
  EXPECT_THAT(json, Not(HasSubstr("first")));
}

TEST(EventLogEntryTest, ExtrasKeepTheirTypes) {
  EventLogEntry entry;
  entry.extra("text", "a\nb").extra("int", -5).extra("big", std::numeric_limits<std::uint64_t>::max());
  entry.extra("yes", true).extra("half", 0.5).extra("nan", std::numeric_limits<double>::quiet_NaN());
  entry.extra_json("list", "[1,\n 2]");
  const auto object = boost::json::parse(json_of(entry)).as_object();
  EXPECT_EQ(object.at("text").as_string(), "a\nb");
  EXPECT_EQ(object.at("int").as_int64(), -5);
  EXPECT_EQ(object.at("big").as_uint64(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(object.at("yes").as_bool());
  EXPECT_EQ(object.at("half").as_double(), 0.5);
  EXPECT_TRUE(object.at("nan").is_null());
  EXPECT_EQ(object.at("list").as_array().size(), 2U);
}

TEST(EventLogEntryTest, ANullPointerDoesNotCrashAndACharacterIsNoNumber) {
  const char* const none = nullptr;
  EventLogEntry entry = EventLogEntry::process_step("p", "s");
  entry.extra("none", none).extra("character", 'x').extra("byte", static_cast<unsigned char>('x'));
  EXPECT_THAT(json_of(entry), HasSubstr(R"("none":"","character":"x","byte":120)"));
}

TEST(EventLogEntryTest, RefusesWhatWouldBreakTheLine) {
  EventLogEntry entry;
  for (const char* name :
       {"", "step", "idempotencyKey", "spillSeq", "xxh3", "timestamp", "id", "receivedAt"}) {
    EXPECT_THROW(entry.extra(name, 1), Error) << name;
  }
  EXPECT_THROW(entry.extra(std::string(129, 'x'), 1), Error);
  EXPECT_THROW(entry.extra_json("x", "{"), Error);
  EXPECT_THROW(entry.extra_json("x", "1} {"), Error);
  for (const char* key : {"", "a b", "a\"b", "a\\b", "a\nb", "ä"}) {
    EXPECT_THROW(entry.idempotency_key(key), Error) << key;
  }
  EXPECT_THROW(entry.idempotency_key(std::string(65, 'x')), Error);
  EXPECT_TRUE(entry.empty());
}

TEST(EventLogEntryTest, TheCallersKeyAndTimeGoFirst) {
  EventLogEntry entry;
  entry.idempotency_key("mine").timestamp(TimePoint{Duration{1'000'001}});
  EXPECT_EQ(json_of(entry), R"({"timestamp":"1970-01-01T00:00:01.000001Z","idempotencyKey":"mine"})");
  EXPECT_EQ(entry.timestamp(), TimePoint{Duration{1'000'001}});
  EXPECT_EQ(EventLogEntry{}.timestamp(), std::nullopt);
}

TEST(EventLogEntryTest, DefaultsFillWhatIsNotSet) {
  EventLogEntry entry;
  entry.user_id("ada");
  const std::string json = json_of(entry, {.application_id = "shop", .user_id = "system"});
  EXPECT_THAT(json, HasSubstr(R"("applicationId":"shop")"));
  EXPECT_THAT(json, HasSubstr(R"("userId":"ada")"));
  EXPECT_THAT(json, Not(HasSubstr("originatingSystem")));
}

TEST(EventLogEntryTest, HazardL16NewlinesAreEscapedAndInvalidUtf8IsRepaired) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EventLogEntry entry;
  entry.details(all).step("ä€𝄞 and \xC0\xAF").extra("line\nbreak", "x\ny");
  const std::string json = json_of(entry);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_TRUE(utf8_length(json));
  const auto object = boost::json::parse(json).as_object();
  const std::string details(object.at("details").as_string().c_str(),
                            object.at("details").as_string().size());
  EXPECT_EQ(details.substr(0, 128), all.substr(0, 128));
  EXPECT_EQ(object.at("step").as_string(), "ä€𝄞 and \xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(object.at("line\nbreak").as_string(), "x\ny");
}

RC_GTEST_PROP(EventLogEntryTest, AnyTextComesBack, (const std::vector<std::uint8_t>& bytes)) {
  std::string text(bytes.begin(), bytes.end());
  EventLogEntry entry;
  entry.details(text).extra("x", text);
  std::string json = "{";
  RC_ASSERT(append_members(json, entry.packed(), {noon, "k"}, {}));
  json += "}";
  // utf8_repaired also takes out NUL, which JSON can say.
  std::string wanted = text;
  if (!utf8_length(wanted)) return;
  const auto object = boost::json::parse(json).as_object();
  if (!text.empty()) RC_ASSERT(object.at("details").as_string() == wanted);
  RC_ASSERT(object.at("x").as_string() == wanted);
  RC_ASSERT(EventLogEntry::unpack(entry.packed()) == entry);
}

TEST(EventLogEntryTest, DamagedBytesAreNotReadBeyondTheirEnd) {
  EventLogEntry entry = EventLogEntry::process_end("p", "s");
  entry.extra("name", "value").timestamp(noon);
  const std::string packed(entry.packed());
  std::size_t refused = 0;
  for (std::size_t size = 0; size < packed.size(); ++size) {
    refused += !EventLogEntry::unpack(packed.substr(0, size));
  }
  EXPECT_EQ(refused, packed.size() - 5) << "only at its five field borders it can be cut";
  for (std::size_t i = 0; i < packed.size(); ++i) {
    std::string damaged = packed;
    damaged[i] = '\xff';
    std::string out;
    const bool read = append_members(out, damaged, {noon, "k"}, {});
    EXPECT_EQ(out.empty(), !read);
  }
}

TEST(EventLogEntryTest, TimesOfABrokenClockStayFourDigitYears) {
  for (const auto& [time, text] : {std::pair{TimePoint::min(), "0000-01-01T00:00:00.000Z"},
                                   std::pair{TimePoint::max(), "9999-12-31T00:00:00.000Z"},
                                   std::pair{TimePoint{Duration{-1}}, "1969-12-31T23:59:59.999999Z"}}) {
    std::string out;
    append_time(out, time);
    EXPECT_EQ(out, text);
  }
}

TEST(EventLogEntryTest, SaysWhyItIsNotValid) {
  using namespace std::string_literals;
  const auto entry = [] { return EventLogEntry::process_step("Test", "Step"); };
  EXPECT_EQ(entry().fault(), "");
  EXPECT_EQ(EventLogEntry{}.fault(), "processName is missing");
  EXPECT_EQ(EventLogEntry{}.process_name("Test").fault(), "processStatus is missing");
  EXPECT_EQ(entry().step(std::string(201, 'x')).fault(), "step has more than 200 characters");
  EXPECT_EQ(entry().details(std::string(70'000, 'x')).fault(), "details has more than 65536 bytes");
  EXPECT_EQ(entry().user_id("a\0b"s).fault(), "userId has a NUL in it");
  EXPECT_EQ(entry().timestamp(TimePoint::min()).fault(), "timestamp is not in the years 1000 to 9999");
  EXPECT_EQ(entry().extra("room", "\0"s).fault(), "the extra 'room' has a NUL in it");
  EXPECT_EQ(entry().extra("room", std::string(70'000, 'x')).fault(),
            "the extras have more than 65536 bytes together");
  EXPECT_EQ(entry().extra("room", "\0"s).extra("room", "one").fault(), "") << "the last value counts";
  const auto again = EventLogEntry::unpack(entry().timestamp(TimePoint::min()).packed());
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->valid());
}

TEST(EventLogEntryTest, RefusesJsonThatNoDatabaseKeeps) {
  using namespace std::string_literals;
  for (const char* json :
       {R"("a\u0000b")", R"({"a\u0000":1})", R"([[{"a":"\u0000"}]])", "1e400", "[1, -1e400]"}) {
    EventLogEntry entry;
    EXPECT_THROW(entry.extra_json("x", json), Error) << json;
    EXPECT_TRUE(entry.empty()) << json;
  }
  EventLogEntry entry;
  EXPECT_THROW(entry.extra("a\0b"s, 1), Error);
  entry.extra_json("x", R"({"tiny":1e-400,"large":1e308,"text":"\u0001"})");
  EXPECT_FALSE(entry.empty());
}

}  // namespace
}  // namespace postrider::logger
