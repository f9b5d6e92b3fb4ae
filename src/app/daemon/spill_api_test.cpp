// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/spill_api.hpp"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <fstream>

#include "logger/spill_line.hpp"
#include "postrider/clock.hpp"
#include "support/temp_dir.hpp"

namespace postrider::daemon {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

void spill(const test::TempDir& dir, logger::SpillSeq events) {
  std::string lines;
  for (logger::SpillSeq seq = 1; seq <= events; ++seq) {
    logger::append_spill_line(
        lines, seq, R"("applicationId":"a","timestamp":"1970-01-01T00:00:01Z","idempotencyKey":"k")");
  }
  std::ofstream(dir.file("eventlog-spillover.jsonl")) << lines;
}

TEST(SpillBoard, ReportsEachFolderAndNamesTheOneThatIsNotThere) {
  const test::TempDir dir;
  spill(dir, 3);
  std::ofstream(dir.file("eventlog-spillover.dead.jsonl")) << "{\"status\":400}\n{\"status\":422}\n";
  std::ofstream(dir.file("eventlog-spillover.quarantine.jsonl")) << "torn\n";
  ManualClock clock;
  clock.set_wall(TimePoint{61s});
  SpillBoard board({dir.path().string(), dir.file("nowhere")}, clock);
  const json::object all = board.reports();
  const json::value& first = all.at("folders").at(0);
  EXPECT_EQ(first.at("error"), nullptr);
  EXPECT_EQ(first.at("waiting"), 3);
  EXPECT_EQ(first.at("deadLetters"), 2);
  EXPECT_EQ(first.at("quarantined"), 1);
  EXPECT_EQ(first.at("oldestSeconds").to_number<double>(), 60);
  EXPECT_EQ(first.at("files").as_array().size(), 3U);
  const json::value& second = all.at("folders").at(1);
  EXPECT_THAT(std::string(second.at("error").as_string()), HasSubstr("there is no such folder"));
  ASSERT_EQ(first.as_object().size(), second.as_object().size());
  for (const auto& member : first.as_object()) {
    EXPECT_TRUE(second.as_object().contains(member.key())) << member.key();
  }
}

TEST(SpillBoard, NumbersThatNoLineHasAreMissing) {
  const test::TempDir dir;
  std::string lines;
  for (const logger::SpillSeq seq : {1, 2, 4, 7})
    logger::append_spill_line(lines, seq, R"("applicationId":"a","idempotencyKey":"k")");
  std::ofstream(dir.file("eventlog-spillover.jsonl")) << lines << "{\"applicationId\":\"another\"}\n";
  std::ofstream(dir.file("eventlog-spillover.dead.jsonl")) << "{\"status\":400}\n";
  std::ofstream(dir.file("file")) << "x";
  ManualClock clock;
  SpillBoard board({dir.path().string(), dir.file("file")}, clock);
  const json::object all = board.reports();
  const json::value& report = all.at("folders").at(0);
  EXPECT_EQ(report.at("missing"), json::parse(R"([{"first":3,"end":4},{"first":5,"end":7}])"));
  EXPECT_EQ(report.at("gaps"), json::array()) << "nobody gave them up";
  EXPECT_EQ(report.at("replayedUpTo"), 0);
  EXPECT_EQ(report.at("waiting"), 5);
  EXPECT_EQ(report.at("files").at(0).at("events"), 1) << "a dead letter is one";
  EXPECT_EQ(report.at("files").at(0).at("foreign"), 0);
  EXPECT_EQ(report.at("files").at(1).at("waiting"), 5) << "as above";
  EXPECT_THAT(std::string(all.at("folders").at(1).at("error").as_string()),
              HasSubstr("it is a file, not a folder"));
}

TEST(SpillBoard, ManyWhoAskDoNotEachReadTheDisk) {
  const test::TempDir dir;
  spill(dir, 1);
  ManualClock clock;
  SpillBoard board({dir.path().string()}, clock);
  EXPECT_EQ(board.reports().at("folders").at(0).at("waiting"), 1);
  spill(dir, 2);
  clock.advance(1s);
  EXPECT_EQ(board.reports().at("folders").at(0).at("waiting"), 1) << "it does not look again at once";
  clock.advance(1s);
  EXPECT_EQ(board.reports().at("folders").at(0).at("waiting"), 2);
}

}  // namespace
}  // namespace postrider::daemon
