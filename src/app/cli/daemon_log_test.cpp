// SPDX-License-Identifier: Apache-2.0
#include "app/cli/daemon_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <regex>
#include <string>

namespace postrider::cli {
namespace {

/// What it says on a standard error of its own, of which JOURNAL_STREAM says `stream`.
std::string logged_with(const std::string& stream) {
  ::testing::internal::CaptureStderr();
  if (stream == "this") {
    struct stat open_file {};
    EXPECT_EQ(::fstat(STDERR_FILENO, &open_file), 0);
    ::setenv("JOURNAL_STREAM",
             (std::to_string(open_file.st_dev) + ":" + std::to_string(open_file.st_ino)).c_str(), 1);
  } else if (!stream.empty()) {
    ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
  }
  const LogCallback log = daemon_log(LogLevel::info);
  log(LogLevel::debug, "nothing");
  log(LogLevel::error, "postrider: it\nbroke");
  ::unsetenv("JOURNAL_STREAM");
  return ::testing::internal::GetCapturedStderr();
}

TEST(DaemonLog, HasTheTimeInFrontWhereNobodyElseNotesIt) {
  const std::regex timed(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z postrider error: it broke\n)");
  for (const char* stream : {"", "8:1", "nonsense"}) {
    const std::string said = logged_with(stream);
    EXPECT_TRUE(std::regex_match(said, timed)) << stream << ": " << said;
  }
}

TEST(DaemonLog, LeavesTheTimeToTheJournal) {
  EXPECT_EQ(logged_with("this"), "postrider error: it broke\n");
}

}  // namespace
}  // namespace postrider::cli
