// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/wire.hpp"

#include <gtest/gtest.h>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/postgres_test_support.hpp"

namespace postrider::postgres {
namespace {

using namespace std::chrono_literals;

TEST(PostgresTime, CountsFromTheYear2000) {
  EXPECT_EQ(to_pg_time(TimePoint(Duration(946'684'800'000'000))), 0);
  EXPECT_EQ(to_pg_time(TimePoint(Duration(946'684'800'000'001))), 1);
  EXPECT_EQ(from_pg_time(-1), TimePoint(Duration(946'684'799'999'999)));
  EXPECT_EQ(from_pg_time(to_pg_time(EventLimits::earliest)), EventLimits::earliest);
  EXPECT_EQ(from_pg_time(to_pg_time(EventLimits::latest)), EventLimits::latest);
}

TEST(PostgresTime, TakesTheInfinitiesOfTheServer) {
  EXPECT_EQ(from_pg_time(std::numeric_limits<std::int64_t>::max()), TimePoint::max());
  EXPECT_EQ(from_pg_time(std::numeric_limits<std::int64_t>::min()), TimePoint::min());
  EXPECT_EQ(to_pg_time(TimePoint::min()), std::numeric_limits<std::int64_t>::min());
}

TEST(PostgresParams, ArrayOfBytesIsTheServersFormat) {
  Params params;
  params.begin_array(oid::bytea, 2);
  params.element("ab");
  params.element_null();
  params.end_array();
  const Params::Native native = params.native();
  ASSERT_EQ(params.count(), 1);
  EXPECT_EQ(native.formats[0], 1);
  const std::string expected("\0\0\0\1\0\0\0\1\0\0\0\x11\0\0\0\2\0\0\0\1\0\0\0\2ab\xff\xff\xff\xff", 30);
  EXPECT_EQ(std::string(native.values[0], static_cast<std::size_t>(native.lengths[0])), expected);
}

TEST(PostgresParams, EmptyTextIsNotNull) {
  Params params;
  params.text({}).null().text_or_null({});
  const Params::Native native = params.native();
  EXPECT_NE(native.values[0], nullptr);
  EXPECT_EQ(native.values[1], nullptr);
  EXPECT_EQ(native.values[2], nullptr);
}

class WireTest : public PostgresTest {};

TEST_F(WireTest, EveryKindOfArrayArrivesAsItWas) {
  ConnectionContext context;
  context.url = url();
  Connection connection(context);
  const std::string awkward[] = {"", "NULL", "a,b", "{\"x\":\"\\\\\"}", "ü€𝄞", "'", std::string(70000, 'x')};
  Params params;
  params.begin_array(oid::text, std::size(awkward) + 1);
  for (const std::string& text : awkward) params.element(text);
  params.element_null();
  params.end_array();
  params.begin_array(oid::int8, 2);
  params.element_int8(-1);
  params.element_int8(std::numeric_limits<std::int64_t>::max());
  params.end_array();
  params.begin_array(oid::int2, 1);
  params.element_int2(-2);
  params.end_array();
  params.begin_array(oid::timestamptz, 1);
  params.element_timestamp(TimePoint(1'700'000'000'123'456us));
  params.end_array();
  params.begin_array(oid::interval, 1);
  params.element_interval(90s);
  params.end_array();
  params.begin_array(oid::bytea, 1);
  params.element(std::string_view("\0\xff'", 3));
  params.end_array();
  params.begin_array(oid::text, 0);
  params.end_array();
  const Statement statement(
      "SELECT $1::text[], cardinality($1::text[]), ($2::bigint[])[1], ($2::bigint[])[2], "
      "($3::int2[])[1]::int8, "
      "($4::timestamptz[])[1], ($5::interval[])[1] = interval '90 seconds', ($6::bytea[])[1], "
      "cardinality($7::text[]), "
      "($1::text[])[7] = repeat('x', 70000), ($1::text[])[8] IS NULL, ($1::text[])[4], ($1::text[])[5], "
      "($1::text[])[2] = 'NULL'");
  Pipeline pipeline(connection, "test");
  pipeline.send(statement, params);
  const Result result = std::move(pipeline.finish().at(0));
  EXPECT_EQ(result.int4(0, 1), 8);
  EXPECT_EQ(result.int8(0, 2), -1);
  EXPECT_EQ(result.int8(0, 3), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(result.int8(0, 4), -2);
  EXPECT_EQ(result.timestamp(0, 5), TimePoint(1'700'000'000'123'456us));
  EXPECT_TRUE(result.boolean(0, 6));
  EXPECT_EQ(result.text(0, 7), std::string_view("\0\xff'", 3));
  EXPECT_EQ(result.int4(0, 8), 0);
  EXPECT_TRUE(result.boolean(0, 9));
  EXPECT_TRUE(result.boolean(0, 10));
  EXPECT_EQ(result.text(0, 11), awkward[3]);
  EXPECT_EQ(result.text(0, 12), awkward[4]);
  EXPECT_TRUE(result.boolean(0, 13));
}

}  // namespace
}  // namespace postrider::postgres
