// SPDX-License-Identifier: Apache-2.0
#include "support/child_process.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

TEST(ChildProcess, TalksAndTellsHowItEnded) {
  ChildProcess child({"/bin/sh", "-c", "echo $GREETING; read line; echo got $line; exit 3"},
                     {{"GREETING", "hello"}});
  EXPECT_EQ(child.read_line(), "hello");
  EXPECT_TRUE(child.write_line("a word"));
  EXPECT_EQ(child.read_until("got"), "got a word");
  const auto end = child.wait();
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->exited);
  EXPECT_EQ(end->code, 3);
}

TEST(ChildProcess, IsKilledAndReaped) {
  pid_t pid = 0;
  {
    ChildProcess child({"/bin/sh", "-c", "echo up; read line"});
    ASSERT_EQ(child.read_line(), "up");
    pid = child.pid();
    EXPECT_FALSE(child.wait(1ms).has_value());
    EXPECT_TRUE(child.kill().killed());
  }
  EXPECT_EQ(::kill(pid, 0), -1) << "still there, at least as a zombie";
}

TEST(ChildProcess, AProgramThatIsNotThereEndsWith127) {
  ChildProcess child({"/no/such/program"});
  const auto end = child.wait();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 127);
}

TEST(ChildProcess, MuchOutputDoesNotStopItFromEnding) {
  ChildProcess child({"/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"});
  const auto end = child.wait();
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->ok());
  EXPECT_EQ(child.skip_lines(30'000, 1s), 20'000U);
  EXPECT_TRUE(child.at_end());
}

}  // namespace
}  // namespace postrider::test
