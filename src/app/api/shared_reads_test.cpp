// SPDX-License-Identifier: Apache-2.0
#include "app/api/shared_reads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

namespace postrider::api {
namespace {

using namespace std::chrono_literals;

http::Response numbered(int number) {
  return {.body = std::to_string(number)};
}

TEST(SharedReadsTest, EachOfThoseThatComeOneAfterAnotherIsRead) {
  SharedReads reads;
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(reads.get("a", [i] { return numbered(i); }).body, std::to_string(i));
}

TEST(SharedReadsTest, ThoseThatComeWhileOneIsReadShareTheNextAndNotThatOne) {
  SharedReads reads;
  std::promise<void> begun;
  std::promise<void> go_on;
  std::future<http::Response> first = std::async(std::launch::async, [&] {
    return reads.get("a", [&] {
      begun.set_value();
      go_on.get_future().wait();
      return numbered(1);
    });
  });
  begun.get_future().wait();
  EXPECT_EQ(reads.get("b", [] { return numbered(7); }).body, "7") << "another question does not wait";

  constexpr int late = 6;
  std::atomic<int> reads_after{0};
  std::atomic<int> asking{0};
  std::promise<void> may_end;
  const std::shared_future<void> end = may_end.get_future().share();
  std::vector<std::future<http::Response>> others;
  for (int i = 0; i < late; ++i) {
    others.push_back(std::async(std::launch::async, [&] {
      ++asking;
      return reads.get("a", [&] {
        ++reads_after;
        end.wait();
        return numbered(2);
      });
    }));
  }
  for (const auto& other : others) EXPECT_EQ(other.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(reads_after, 0) << "not beside the first";
  while (asking < late) std::this_thread::yield();
  go_on.set_value();
  EXPECT_EQ(first.get().body, "1");
  may_end.set_value();
  for (auto& other : others) EXPECT_EQ(other.get().body, "2") << "the first was begun before they asked";
  EXPECT_GE(reads_after, 1);
  EXPECT_LE(reads_after, 2) << "a latecomer may find the second being read";
}

TEST(SharedReadsTest, WhatIsThrownReachesAllAndTheNextReadsAgain) {
  SharedReads reads;
  EXPECT_THROW((void)reads.get("a", []() -> http::Response { throw std::runtime_error("away"); }),
               std::runtime_error);
  EXPECT_EQ(reads.get("a", [] { return numbered(1); }).body, "1");
}

TEST(SharedReadsTest, UnderLoadEverybodyGetsAnAnswerThatIsNotOlderThanHisQuestion) {
  SharedReads reads;
  std::atomic<int> version{0};
  std::atomic<int> reading{0};
  constexpr int threads = 8;
  constexpr int each = 2000;
  {
    std::vector<std::jthread> askers;
    for (int t = 0; t < threads; ++t) {
      askers.emplace_back([&] {
        for (int i = 0; i < each; ++i) {
          const int mine = ++version;
          const http::Response answer = reads.get("a", [&] {
            EXPECT_EQ(++reading, 1) << "never twice at once";
            http::Response read = numbered(version.load());
            --reading;
            return read;
          });
          ASSERT_GE(std::stoi(answer.body), mine);
        }
      });
    }
  }
}

}  // namespace
}  // namespace postrider::api
