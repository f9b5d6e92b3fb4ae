// SPDX-License-Identifier: Apache-2.0
// `postrider demo` as one runs it: without a terminal it plays all chapters and ends, on one it goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "app/http/socket_client_fixture.hpp"
#include "support/child_process.hpp"
#include "support/places.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr auto patience = 240s;  // for a busy machine and sanitizers

class Demo : public ::testing::Test {
 protected:
  /// Its folder is made in one of our own, to see that nothing is left behind.
  void start(const std::string& command) {
    demo_.emplace(std::vector<std::string>{"/bin/sh", "-c", command},
                  ChildProcess::Environment{{"TMPDIR", dir_.path().string()}});
  }
  /// Asks the server at the address of that line.
  [[nodiscard]] static HttpAnswer get(const std::string& line, const std::string& path) {
    const std::size_t at = line.find("http://127.0.0.1:");
    std::uint16_t port = 0;
    if (at != std::string::npos) std::from_chars(line.data() + at + 17, line.data() + line.size(), port);
    return SocketClient(port).ask("GET", path).value_or(HttpAnswer{});
  }
  [[nodiscard]] bool nothing_left() const {
    return std::none_of(fs::directory_iterator(dir_.path()), fs::directory_iterator(), [](const auto& entry) {
      return entry.path().filename().string().starts_with("postrider-demo-");
    });
  }
  /// The program on a terminal of its own; what is written to it is typed there. Without a shell between the
  /// two: a dash, which script takes when SHELL is not set, would die of the Ctrl-C itself and end the
  /// terminal too early.
  [[nodiscard]] static std::string on_terminal(const std::string& options) {
    return "exec script -qec 'exec " + program_path() + " demo " + options + "' /dev/null";
  }

  TempDir dir_;
  std::optional<ChildProcess> demo_;
};

TEST_F(Demo, PlaysEveryChapterAndEndsWithoutATerminal) {
  const std::string summary = dir_.file("summary.json");
  start("exec " + program_path() + " demo --seconds 5 -o json 2>&1 >" + summary);
  const std::string address = demo_->read_until("Dashboard: ", patience).value_or("");
  EXPECT_EQ(get(address, "/api/overview").status, 200) << address;
  EXPECT_EQ(get(address, "/readyz").status, 200);
  const json::value spill = json::parse(get(address, "/api/spill").body);
  ASSERT_EQ(spill.at("folders").as_array().size(), 2U);
  EXPECT_TRUE(spill.at("folders").at(0).at("error").is_null()) << spill;
  EXPECT_EQ(get(address, address.ends_with("/ui") ? "/ui" : "/api/overview").status, 200);

  ASSERT_TRUE(demo_->read_until("Summary", patience)) << demo_->recent_lines();
  const auto end = demo_->wait(patience);
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->ok()) << end->text();
  EXPECT_TRUE(nothing_left());

  std::ifstream file(summary);
  const json::value said = json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  EXPECT_TRUE(said.at("ok").as_bool()) << said;
  EXPECT_EQ("Dashboard: " + std::string(said.at("dashboard").as_string()), address);
  std::map<std::string, json::object> figures;
  for (const json::value& chapter : said.at("chapters").as_array()) {
    EXPECT_TRUE(chapter.at("ok").as_bool()) << chapter;
    figures[std::string(chapter.at("chapter").as_string())] = chapter.at("figures").as_object();
  }
  ASSERT_EQ(figures.size(), 4U) << said;
  const auto figure = [&](const char* chapter, const char* name) {
    return figures.at(chapter).at(name).to_number<std::int64_t>();
  };
  EXPECT_EQ(figure("outbox", "orders"), figure("outbox", "delivered") + figure("outbox", "dead"));
  EXPECT_GT(figure("outbox", "dead"), 0);
  EXPECT_GT(figure("outbox", "retried"), 0);
  EXPECT_EQ(figure("outbox", "lost"), 0);
  EXPECT_EQ(figure("queue", "quarantined"), 1);
  EXPECT_EQ(figure("queue", "completed") + figure("queue", "withErrors"), 599);
  EXPECT_GT(figure("queue", "triedAgain"), 0);
  EXPECT_EQ(figure("event store and relay", "money"), 500);
  EXPECT_EQ(figure("event store and relay", "published"), figure("event store and relay", "events"));
#if defined(POSTRIDER_TEST_HTTP)
  EXPECT_EQ(figure("logger", "stored"), figure("logger", "logged"));
  EXPECT_GT(figure("logger", "replayed"), 0);
#endif
}

TEST_F(Demo, GoesOnUntilCtrlCOnATerminal) {
  start(on_terminal("--seconds 5"));
  ASSERT_TRUE(demo_->read_until("Nothing was lost", patience)) << demo_->recent_lines();
  const std::string address = demo_->read_line(patience).value_or("");
  EXPECT_THAT(address, HasSubstr("Ctrl-C"));
  const auto published = [&] {
    const HttpAnswer answer = get(address, "/api/outbox/counts");
    return answer.status == 200 ? json::parse(answer.body).at("done").to_number<std::int64_t>() : -1;
  };
  const auto projected = [&] {
    const HttpAnswer answer = get(address, "/api/projections");
    if (answer.status != 200) return std::int64_t{-1};
    return json::parse(answer.body).at("projections").at(0).at("position").to_number<std::int64_t>();
  };
  const std::int64_t before = published();
  const std::int64_t projected_before = projected();
  ASSERT_GE(before, 0);
  ASSERT_GT(projected_before, 0);
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (published() <= before && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_GT(published(), before) << "a gentle stream goes on";
  while (projected() <= projected_before && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_GT(projected(), projected_before) << "and the projection of the log with it";
  EXPECT_TRUE(demo_->write_line("\x03"));
  const auto end = demo_->wait(patience);
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->ok()) << end->text();
  EXPECT_TRUE(nothing_left());
}

TEST_F(Demo, InterruptedInTheMiddleItLeavesNothingBehind) {
  start(on_terminal("--seconds 600"));
  const std::string address = demo_->read_until("Dashboard: ", patience).value_or("");
  EXPECT_EQ(get(address, "/livez").status, 200);
  EXPECT_TRUE(demo_->write_line("\x03"));
  const auto end = demo_->wait(patience);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 1) << end->text();
  EXPECT_EQ(get(address, "/livez").status, 0);
  EXPECT_TRUE(nothing_left());
}

}  // namespace
}  // namespace postrider::test
