// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

namespace postrider::logger {
namespace {

using Kind = SpillLine::Kind;

const std::string members = R"("step":"Booked, twice","idempotencyKey":"00ff-1")";

std::string line_of(SpillSeq seq) {
  std::string line;
  append_spill_line(line, seq, members);
  EXPECT_EQ(line.back(), '\n');
  line.pop_back();
  return line;
}

TEST(SpillLineTest, ComesBack) {
  for (const SpillSeq seq : {SpillSeq{0}, SpillSeq{17}, ~SpillSeq{0}}) {
    const std::string line = line_of(seq);
    const SpillLine read = parse_spill_line(line);
    EXPECT_EQ(read.kind, Kind::ours);
    EXPECT_EQ(read.seq, seq);
    EXPECT_EQ(leading_seq(line), seq);
    EXPECT_EQ(read.members, members);
    EXPECT_EQ(read.key, "00ff-1");
    const auto object = boost::json::parse(line).as_object();
    EXPECT_EQ(object.at("step").as_string(), "Booked, twice");
    EXPECT_EQ(object.at("xxh3").as_string().size(), 16U);
  }
}

TEST(SpillLineTest, HazardL8EveryFlippedBitIsFound) {
  const std::string line = line_of(17);
  for (std::size_t bit = 0; bit < line.size() * 8; ++bit) {
    std::string damaged = line;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(parse_spill_line(damaged).kind, Kind::corrupt) << damaged;
  }
}

TEST(SpillLineTest, EveryTornLineIsFound) {
  const std::string line = line_of(17);
  for (std::size_t size = 0; size < line.size(); ++size) {
    EXPECT_EQ(parse_spill_line(line.substr(0, size)).kind, Kind::corrupt) << size;
    if (size == 0) continue;
    EXPECT_EQ(parse_spill_line(line.substr(0, size) + line).kind, Kind::corrupt) << size;
  }
}

TEST(SpillLineTest, LinesOfTheOtherSystemAreTaken) {
  const std::string line =
      R"({"applicationId":"pet-resort-api","processStatus":"PROCESS_START","timestamp":"2026-06-01T10:15:30.123Z"})";
  const SpillLine read = parse_spill_line(line);
  EXPECT_EQ(read.kind, Kind::foreign);
  EXPECT_EQ("{" + std::string(read.members) + "}", line);
  EXPECT_EQ(read.key, "");
  EXPECT_EQ(parse_spill_line(R"( {"a":1,"idempotencyKey":"k"} )"
                             "\r")
                .key,
            "k");
  for (const char* bad : {"", "{}", "[]", "1", "{\"a\":1", "{\"a\":1} {", "{\"a\":\"\xff\"}"}) {
    EXPECT_EQ(parse_spill_line(bad).kind, Kind::corrupt) << bad;
  }
}

TEST(SpillLineTest, TwoLinesWithoutTheirNewlineAreToldApart) {
  const std::string glued = line_of(17) + "\x0b" + line_of(18);
  ASSERT_EQ(parse_spill_line(glued).kind, Kind::corrupt);
  const std::size_t second = find_glued_line(glued);
  ASSERT_EQ(second, line_of(17).size() + 1);
  EXPECT_EQ(parse_spill_line(std::string_view(glued).substr(0, second - 1)).seq, 17U);
  EXPECT_EQ(parse_spill_line(std::string_view(glued).substr(second)).seq, 18U);
  EXPECT_EQ(find_glued_line(line_of(17)), std::string::npos);
}

}  // namespace
}  // namespace postrider::logger
