// SPDX-License-Identifier: Apache-2.0
#include "postrider/file_sink.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "core/failpoint.hpp"
#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Kind = PublishResult::Kind;

class FileSinkTest : public ::testing::Test {
 protected:
  std::shared_ptr<Sink> sink(std::size_t max_bytes = 1 << 20, std::size_t keep = 0) const {
    return file_sink({.path = path_,
                      .max_bytes = max_bytes,
                      .keep = keep,
                      .limits = {.breaker_threshold = 0, .log = [](LogLevel, std::string_view) {}}});
  }
  static PublishResult send(Sink& sink, const std::string& payload = "{}") {
    const Event event = Event::json("T", payload);
    const SinkMessage message{.event = &event};
    return sink.send({&message, 1});
  }
  std::size_t lines(const std::string& path) const {
    std::ifstream file(path);
    std::size_t count = 0;
    for (std::string line; std::getline(file, line); ++count) EXPECT_THAT(line, ::testing::EndsWith("}"));
    return count;
  }
  /// Of somebody else who is writing to the file.
  class Lock {
   public:
    explicit Lock(const std::string& path) : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
      EXPECT_EQ(::flock(file_, LOCK_EX | LOCK_NB), 0) << "nobody has it between two batches";
    }
    ~Lock() { ::close(file_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    const int file_;
  };
  TempDir folder_;
  std::string path_ = folder_.file("events.jsonl");
};

TEST_F(FileSinkTest, IsForNobodyElsesEyes) {
  ASSERT_EQ(send(*sink()).kind(), Kind::all);
  struct stat about {};
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST_F(FileSinkTest, RenamesFullFilesAndKeepsSoMany) {
  const auto one = sink(1024, 2);
  for (int i = 0; i < 12; ++i) ASSERT_EQ(send(*one, "\"" + std::string(600, 'x') + "\"").kind(), Kind::all);
  EXPECT_FALSE(fs::exists(path_ + ".1"));
  EXPECT_FALSE(fs::exists(path_ + ".3"));
  EXPECT_TRUE(fs::exists(path_ + ".4"));
  EXPECT_TRUE(fs::exists(path_ + ".5"));
  EXPECT_EQ(lines(path_ + ".5") + lines(path_ + ".4") + lines(path_), 6U);
}

TEST_F(FileSinkTest, ALineThatACrashHasCutIsRemoved) {
  ASSERT_EQ(send(*sink()).kind(), Kind::all);
  { std::ofstream(path_, std::ios::app) << R"({"specversion":"1.0","id":")"; }
  ASSERT_EQ(send(*sink()).kind(), Kind::all);
  EXPECT_EQ(lines(path_), 2U);
}

#if defined(POSTRIDER_FAILPOINTS)
TEST_F(FileSinkTest, WhatAnotherOneWroteBeforeTheLockWasTakenStays) {
  { std::ofstream(path_) << R"({"id":"whole"})" << '\n' << R"({"id":"torn)"; }
  const auto first = sink();
  const auto second = sink();
  // The other one opens the file, writes to it and ends, between our opening it and our lock.
  bool inside = false;
  failpoints::set("sink.file.opened", [&] {
    if (std::exchange(inside, true)) return;
    EXPECT_EQ(send(*sink()).kind(), Kind::all);
    EXPECT_EQ(lines(path_), 2U);
  });
  EXPECT_EQ(send(*first).kind(), Kind::all);
  failpoints::clear();
  EXPECT_EQ(lines(path_), 3U);
  EXPECT_EQ(send(*second).kind(), Kind::all);
  EXPECT_EQ(lines(path_), 4U);
}

TEST_F(FileSinkTest, AFileThatWasRenamedBeforeTheLockWasTakenIsNotWrittenTo) {
  { std::ofstream(path_) << ""; }
  const auto one = sink();
  failpoints::set("sink.file.opened", [&] { fs::rename(path_, path_ + ".1"); });
  EXPECT_EQ(send(*one).kind(), Kind::unavailable);
  failpoints::clear();
  EXPECT_EQ(send(*one).kind(), Kind::all);
  EXPECT_EQ(lines(path_ + ".1"), 0U);
  EXPECT_EQ(lines(path_), 1U);
}

TEST_F(FileSinkTest, ATurnOfSomebodyElseIsWaitedFor) {
  const auto one = sink();
  ASSERT_EQ(send(*one).kind(), Kind::all);
  std::optional<Lock> other(path_);
  failpoints::set("sink.file.busy", [&] { other.reset(); });
  EXPECT_EQ(send(*one).kind(), Kind::all);
  failpoints::clear();
  EXPECT_FALSE(other.has_value());
}

TEST_F(FileSinkTest, WhoWaitsWhileTheFileIsRenamedWritesToTheNewOne) {
  const auto one = sink();
  ASSERT_EQ(send(*one).kind(), Kind::all);
  std::optional<Lock> other(path_);
  failpoints::set("sink.file.busy", [&] {
    fs::rename(path_, path_ + ".1");
    other.reset();
  });
  EXPECT_EQ(send(*one).kind(), Kind::all);
  failpoints::clear();
  EXPECT_EQ(lines(path_ + ".1"), 1U);
  EXPECT_EQ(lines(path_), 1U);
}

TEST_F(FileSinkTest, ClosingEndsTheWaitForSomebodyElse) {
  const auto one = sink();
  ASSERT_EQ(send(*one).kind(), Kind::all);
  const Lock other(path_);
  int looks = 0;
  failpoints::set("sink.file.busy", [&] {
    ++looks;
    one->close();
  });
  EXPECT_EQ(send(*one).kind(), Kind::unavailable);
  failpoints::clear();
  EXPECT_EQ(looks, 1);
}
#endif

TEST_F(FileSinkTest, WhoLeadsNextFindsTheFileFree) {
  const auto first = sink();
  const auto second = sink();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(send(*first).kind(), Kind::all);
    const PublishResult next = send(*second);
    ASSERT_EQ(next.kind(), Kind::all) << next.reason();
  }
  EXPECT_EQ(lines(path_), 6U);
}

TEST_F(FileSinkTest, WhatOthersDoToTheFileInTheMeantimeIsSeen) {
  const auto first = sink(1024);
  const auto second = sink(1024);
  const std::string large = "\"" + std::string(1'000, 'x') + "\"";
  ASSERT_EQ(send(*first).kind(), Kind::all);
  { std::ofstream(path_, std::ios::app) << R"({"specversion":"1.0","id":")"; }
  ASSERT_EQ(send(*first).kind(), Kind::all) << "another one has died in the middle of a line";
  EXPECT_EQ(lines(path_), 2U);
  ASSERT_EQ(send(*second, large).kind(), Kind::all);
  ASSERT_EQ(send(*first).kind(), Kind::all) << "the other one has filled it";
  EXPECT_EQ(lines(path_ + ".1"), 3U);
  EXPECT_EQ(lines(path_), 1U);
  ASSERT_EQ(send(*second).kind(), Kind::all) << "the first one has renamed it";
  EXPECT_EQ(lines(path_), 2U);
  fs::resize_file(path_, 0);
  ASSERT_EQ(send(*first).kind(), Kind::all);
  EXPECT_EQ(lines(path_), 1U);
  EXPECT_FALSE(fs::exists(path_ + ".2"));
}

TEST_F(FileSinkTest, TwoProcessesTearNoLineAndKeepTheirOrder) {
  constexpr int count = 150;
  // Small files, so that they rename them under each other's hands as well.
  const auto send_all = [&](const std::string& who) {
    const auto own = sink(4096);
    for (int i = 0; i < count; ++i) {
      const std::string payload = R"({"who":")" + who + R"(","n":)" + std::to_string(i) + "}";
      while (send(*own, payload).kind() != Kind::all) std::this_thread::yield();
    }
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(120);  // it shall not outlive a test that hangs
    [&]() noexcept { send_all("child"); }();
    ::_exit(0);
  }
  send_all("parent");
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  std::map<std::string, int> next;
  const auto read = [&](const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const boost::json::value event = boost::json::parse(line);
      const boost::json::value& data = event.at("data");
      EXPECT_EQ(data.at("n").as_int64(), next[std::string(data.at("who").as_string())]++);
    }
  };
  for (int number = 1; fs::exists(path_ + "." + std::to_string(number)); ++number) {
    read(path_ + "." + std::to_string(number));
  }
  read(path_);
  EXPECT_EQ(next, (std::map<std::string, int>{{"child", count}, {"parent", count}}));
}

TEST_F(FileSinkTest, AFileThatIsOneTornLineBecomesEmpty) {
  { std::ofstream(path_) << std::string(200'000, 'x'); }
  ASSERT_EQ(send(*sink()).kind(), Kind::all);
  EXPECT_EQ(lines(path_), 1U);
}

TEST_F(FileSinkTest, JsonOfManyLinesIsOneLine) {
  ASSERT_EQ(send(*sink(), "{\n  \"a\":\r\n 1}").kind(), Kind::all);
  EXPECT_EQ(lines(path_), 1U);
}

TEST_F(FileSinkTest, AFileThatWasMovedAwayIsMadeAnew) {
  const auto one = sink();
  ASSERT_EQ(send(*one).kind(), Kind::all);
  fs::rename(path_, path_ + ".moved");
  ASSERT_EQ(send(*one).kind(), Kind::all);
  EXPECT_EQ(lines(path_), 1U);
  fs::remove(path_);
  ASSERT_EQ(send(*one).kind(), Kind::all);
  EXPECT_EQ(lines(path_), 1U);
}

TEST_F(FileSinkTest, OneWriterAtATime) {
  const auto one = sink();
  ASSERT_EQ(send(*one).kind(), Kind::all);
  const Lock other(path_);
  const PublishResult result = send(*one);
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), HasSubstr("another process"));
  EXPECT_EQ(lines(path_), 1U);
}

TEST_F(FileSinkTest, WhatIsNoFileIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const PublishResult fifo = send(*sink());
  EXPECT_EQ(fifo.kind(), Kind::unavailable);
  EXPECT_THAT(fifo.reason(), HasSubstr("not a regular file"));
  fs::remove(path_);
  fs::create_symlink(folder_.file("elsewhere"), path_);
  EXPECT_EQ(send(*sink()).kind(), Kind::unavailable);
  EXPECT_FALSE(fs::exists(folder_.file("elsewhere")));
}

TEST_F(FileSinkTest, ABatchThatDoesNotFitIsTakenBack) {
  const auto one = sink();
  ASSERT_EQ(send(*one).kind(), Kind::all);
  const auto before = fs::file_size(path_);
  // The largest file that this process may write stands for a full disk: part of a write succeeds, the rest
  // fails.
  struct rlimit unlimited {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { before + 100, unlimited.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const PublishResult full = send(*one, "\"" + std::string(5'000, 'x') + "\"");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(full.kind(), Kind::unavailable);
  EXPECT_THAT(full.reason(), HasSubstr("cannot write"));
  EXPECT_EQ(fs::file_size(path_), before);
  ASSERT_EQ(send(*one).kind(), Kind::all);
  EXPECT_EQ(lines(path_), 2U);
}

TEST_F(FileSinkTest, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW((void)file_sink({}), Error);
  EXPECT_THROW((void)file_sink({.path = path_, .max_bytes = 10}), Error);
  EXPECT_THROW((void)file_sink({.path = path_, .source = "not a uri"}), Error);
}

}  // namespace
}  // namespace postrider::test
