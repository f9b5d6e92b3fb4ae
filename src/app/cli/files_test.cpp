// SPDX-License-Identifier: Apache-2.0
// Commands that work on files: a logger's spill folder, and the folder of `postrider dev`.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "app/cli/cli_fixture.hpp"
#include "app/daemon/dashboard.hpp"
#include "logger/lane.hpp"
#include "logger/spill_checkpoint.hpp"
#include "logger/spill_folder.hpp"
#include "logger/spill_gaps.hpp"
#include "logger/spill_line.hpp"
#include "support/places.hpp"

namespace postrider::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Spill, SaysWhenNoLoggerHasUsedTheFolder) {
  const test::TempDir dir;
  std::ofstream(dir.file("notes.jsonl")) << "{}\n";
  CommandLine line;
  const CommandLine::Said said = line.run({"spill", "show", dir.path().string(), "-o", "json"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.json().at("waiting"), 0);
  EXPECT_THAT(said.err, HasSubstr("no logger has used"));
  { const auto folder = logger::open_spill_folder(dir.path().string()); }
  EXPECT_EQ(line.run({"spill", "show", dir.path().string()}).err, "");
}

TEST(Spill, CountsWhatWaitsBesideALoggerThatHasTheFolder) {
  const test::TempDir dir;
  const std::unique_ptr<logger::SpillFolder> folder =
      logger::open_spill_folder(dir.path().string());  // its lock is held
  std::string lines;
  for (logger::SpillSeq seq = 5; seq < 10; ++seq) {
    logger::append_spill_line(lines, seq,
                              R"("applicationId":"a","timestamp":"2026-01-01T00:00:0)" + std::to_string(seq) +
                                  R"(Z","idempotencyKey":"k")");
  }
  lines += R"({"applicationId":"b","idempotencyKey":"x"})"
           "\n";
  lines += "damaged\n{\"spillSeq\":10,\"half";
  std::ofstream(dir.file("eventlog-spillover.jsonl")) << lines;
  std::ofstream(dir.file("eventlog-spillover.dead.jsonl")) << R"({"status":400})"
                                                              "\n";
  ASSERT_EQ(logger::SpillCheckpoint(*folder).store(logger::SpillCursor{.seq = 7}), 0);
  logger::SpillGaps gaps(*folder);
  gaps.add({1, 5});
  ASSERT_TRUE(gaps.save());
  constexpr std::uint32_t chunk_bytes = 4096;
  constexpr std::uint32_t chunks = 4;
  logger::Lane lane(
      logger::LaneMemory::file(dir.file("eventlog-ring.1"),
                               logger::LaneMemory::head_bytes + std::size_t{chunk_bytes} * chunks),
      chunk_bytes, chunks, 42);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(lane.push("packed", 1'767'225'600'000'000 + i));
  const std::string before = content(dir.file("eventlog-spillover.jsonl"));

  CommandLine line;
  const CommandLine::Said said = line.run({"spill", "show", dir.path().string(), "-o", "json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const boost::json::value report = said.json();
  EXPECT_EQ(report.at("waiting"), 4) << "7, 8, 9 and the one of another system";
  EXPECT_EQ(report.at("replayedUpTo"), 6) << "7 is the next one";
  EXPECT_EQ(report.at("oldest"), "2026-01-01T00:00:07Z");
  EXPECT_GT(report.at("oldestSeconds").to_number<double>(), 0);
  EXPECT_EQ(report.at("deadLetters"), 1);
  EXPECT_EQ(report.at("quarantined"), 0);
  EXPECT_EQ(report.at("inRings"), 3);
  EXPECT_EQ(report.at("rings").at(0).at("oldest"), "2026-01-01T00:00:00Z");
  EXPECT_EQ(report.at("gaps").at(0).at("first"), 1);
  EXPECT_EQ(report.at("gaps").at(0).at("end"), 5);
  EXPECT_EQ(report.at("missing"), boost::json::array()) << "what was given up is known";
  const boost::json::value& file = report.at("files").at(1);
  EXPECT_EQ(file.at("name"), "eventlog-spillover.jsonl");
  EXPECT_EQ(file.at("kind"), "active");
  EXPECT_EQ(report.at("files").at(0).at("kind"), "dead letters");
  EXPECT_EQ(report.at("files").at(0).at("events"), 1);
  EXPECT_EQ(report.at("files").at(0).at("foreign"), 0);
  EXPECT_EQ(report.at("files").at(0).at("firstSeq"), nullptr);
  EXPECT_EQ(file.at("events"), 5);
  EXPECT_EQ(file.at("waiting"), 4) << "as above";
  EXPECT_EQ(file.at("foreign"), 1);
  EXPECT_EQ(file.at("damaged"), 1);
  EXPECT_EQ(file.at("firstSeq"), 5);
  EXPECT_EQ(file.at("lastSeq"), 9);
  EXPECT_THAT(line.run({"spill", "show", dir.path().string()}).out, HasSubstr("eventlog-ring.1"));
  EXPECT_EQ(content(dir.file("eventlog-spillover.jsonl")), before) << "it only reads";
  EXPECT_EQ(line.run({"spill", "show", dir.file("nowhere")}).code, 1);
}

TEST(Spill, LinesThatSomebodyRemovedAreSeenToBeMissing) {
  const test::TempDir dir;
  const auto put = [&](const char* name, std::initializer_list<logger::SpillSeq> numbers) {
    std::string lines;
    for (const logger::SpillSeq seq : numbers)
      logger::append_spill_line(lines, seq, R"("applicationId":"a","idempotencyKey":"k")");
    std::ofstream(dir.file(name)) << lines;
  };
  put("eventlog-spillover.replay.jsonl", {1, 2, 4, 5});
  put("eventlog-spillover.jsonl", {8, 9});
  CommandLine line;
  const CommandLine::Said said = line.run({"spill", "show", dir.path().string(), "-o", "json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const boost::json::value report = said.json();
  EXPECT_EQ(report.at("missing"), boost::json::parse(R"([{"first":3,"end":4},{"first":6,"end":8}])"));
  EXPECT_EQ(report.at("replayedUpTo"), 0) << "nothing was";
  EXPECT_THAT(line.run({"spill", "show", dir.path().string()}).out, HasSubstr("MISSING FROM"));
}

TEST(Spill, SaysThatAFileIsNoFolder) {
  const test::TempDir dir;
  std::ofstream(dir.file("events")) << "x";
  CommandLine line;
  EXPECT_THAT(line.run({"spill", "show", dir.file("events")}).err, HasSubstr("it is a file, not a folder"));
}

TEST(Dev, RunsEverythingOnOneFile) {
  const test::TempDir dir;
  const std::string folder = dir.file("dev");
  test::ChildProcess child({test::program_path(), "dev", "--folder", folder, "--listen", "127.0.0.1:0"});
  EXPECT_TRUE(child.read_until("  export POSTRIDER_CONFIG=").has_value());
  const std::string first = child.read_until("postrider: on http://").value_or("");
  if (!daemon::dashboard_assets().empty()) {
    EXPECT_TRUE(first.find(", dashboard http://127.0.0.1:") != std::string::npos && first.ends_with("/ui"))
        << first;
  }
  ASSERT_TRUE(child.read_until("postrider: ready").has_value());
  CommandLine line;
  line.environment = {{"POSTRIDER_CONFIG", folder + "/postrider.toml"}};
  EXPECT_EQ(line.run({"publish", "OrderPlaced", "--id", "through-the-outbox"}).code, 0);
  EXPECT_EQ(line.run({"store", "append", "OrderPlaced", "--id", "through-the-relay"}).code, 0);
  // Both reach the file; there is a bound only to fail.
  const auto until = std::chrono::steady_clock::now() + 60s;
  std::string events;
  while (std::chrono::steady_clock::now() < until) {
    events = content(folder + "/events.jsonl");
    if (events.find("through-the-outbox") != std::string::npos &&
        events.find("through-the-relay") != std::string::npos)
      break;
    std::this_thread::yield();
  }
  EXPECT_THAT(events, AllOf(HasSubstr("through-the-outbox"), HasSubstr("through-the-relay")));
  const boost::json::value status = line.run({"status", "-o", "json"}).json();
  EXPECT_EQ(status.at("pairs").as_array().size(), 1U);
  child.signal(SIGTERM);
  EXPECT_TRUE(child.wait().value().ok());
  // For a port that somebody else has now.
  test::ChildProcess elsewhere({test::program_path(), "dev", "--folder", folder, "--listen", "localhost:0"});
  EXPECT_TRUE(elsewhere.read_until("  curl http://localhost:0/api/topics").has_value());
  ASSERT_TRUE(elsewhere.read_until("postrider: ready").has_value());
  elsewhere.signal(SIGTERM);
  EXPECT_TRUE(elsewhere.wait().value().ok());
  // What is there is kept.
  std::ofstream(folder + "/postrider.toml", std::ios::app) << "nonsense = 1\n";
  test::ChildProcess again({test::program_path(), "dev", "--folder", folder});
  EXPECT_EQ(again.wait().value().code, 1);
}

TEST(Dev, AdvisesNothingToTryWhenThePortIsTaken) {
  const test::TempDir dir;
  test::ChildProcess first(
      {test::program_path(), "dev", "--folder", dir.file("first"), "--listen", "127.0.0.1:0"});
  const std::string line = first.read_until("postrider: on http://").value_or("");
  const std::size_t at = line.find("127.0.0.1:");
  ASSERT_NE(at, std::string::npos) << line;
  const std::string address = line.substr(at, line.find_first_of(", ", at) - at);
  const CommandLine::Said said =
      CommandLine().run({"dev", "--folder", dir.file("second"), "--listen", address});
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.out, "");
  EXPECT_THAT(said.err, AllOf(HasSubstr("cannot listen on " + address), HasSubstr("--listen")));
  first.signal(SIGTERM);
  EXPECT_TRUE(first.wait().value().ok());
}

TEST(Dev, ARefusedAddressIsNotWrittenDown) {
  const test::TempDir dir;
  test::ChildProcess child(
      {test::program_path(), "dev", "--folder", dir.file("dev"), "--listen", "0.0.0.0:0"});
  EXPECT_EQ(child.wait().value().code, 1);
  EXPECT_FALSE(std::filesystem::exists(dir.file("dev")));
}

}  // namespace
}  // namespace postrider::cli
