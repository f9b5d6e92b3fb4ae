// SPDX-License-Identifier: Apache-2.0
#include "storage/row_decoder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

using ::testing::HasSubstr;

OutboxColumns good() { return {.event_id = "id-1", .event_type = "T", .payload = "1", .attempts = 2, .token = 5}; }

TEST(DecodeRow, MakesTheEvent) {
  OutboxColumns columns = good();
  columns.ordering_key = "k";
  columns.headers_json = R"({"a":"b"})";
  const ClaimedEvent claimed = decode_row(columns);
  ASSERT_TRUE(claimed.event.has_value()) << claimed.decode_error;
  EXPECT_EQ(claimed.lease.id, EventId("id-1"));
  EXPECT_EQ(claimed.lease.token, Token{5});
  EXPECT_EQ(claimed.failed, Attempt{2});
  EXPECT_EQ(claimed.ordering_key, "k");
  EXPECT_EQ(claimed.event->ordering_key(), "k");
  EXPECT_EQ(claimed.event->headers().at("a"), "b");
}

TEST(DecodeRow, WhatIsNoEventBecomesAReason) {
  struct Case {
    const char* name;
    void (*spoil)(OutboxColumns&);
  };
  const Case cases[] = {
      {"headers", [](OutboxColumns& c) { c.headers_json = "[1]"; }},
      {"headers", [](OutboxColumns& c) { c.headers_json = "{\"a\":"; }},
      {"headers", [](OutboxColumns& c) { c.headers_json = "{\"a\":{}}"; }},
      {"type", [](OutboxColumns& c) { c.event_type = ""; }},
      {"payload", [](OutboxColumns& c) { c.payload = "{not json"; }},
      {"tenant", [](OutboxColumns& c) { c.tenant_id = "\xff\xfe"; }},
  };
  for (const Case& one : cases) {
    OutboxColumns columns = good();
    one.spoil(columns);
    const ClaimedEvent claimed = decode_row(columns);
    EXPECT_FALSE(claimed.event.has_value()) << one.name;
    EXPECT_FALSE(claimed.decode_error.empty()) << one.name;
    EXPECT_EQ(claimed.lease.id, EventId("id-1")) << "it can still be marked DEAD";
  }
}

TEST(DecodeRow, AnIdThatIsNoneIsAnErrorOfTheSchema) {
  OutboxColumns columns = good();
  columns.event_id = "two words";
  try {
    (void)decode_row(columns);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::schema);
    EXPECT_THAT(error.what(), HasSubstr("event_id"));
  }
}

TEST(DecodeRow, AttemptsOutOfBoundsAreBroughtBack) {
  OutboxColumns columns = good();
  columns.attempts = -4;
  EXPECT_EQ(decode_row(columns).failed, Attempt{0});
  columns.attempts = std::int64_t{1} << 40;
  EXPECT_EQ(decode_row(columns).failed, Attempt{2'147'483'647});
}

TEST(StoredError, IsCutAndRepaired) {
  EXPECT_EQ(stored_error("plain"), "plain");
  EXPECT_EQ(stored_error(std::string(4001, 'x')), std::string(4000, 'x'));
  EXPECT_EQ(utf8_length(stored_error(std::string(9000, '\xff'))), 4000U);
  EXPECT_EQ(stored_error(std::string_view("a\0b", 3)).find('\0'), std::string::npos);
}

}  // namespace
}  // namespace postrider
