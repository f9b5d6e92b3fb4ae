// SPDX-License-Identifier: Apache-2.0
#include "storage/handler_results.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HandlerResults, ComeBackAsTheyWere) {
  const std::vector<HandlerResult> results{
      {.handler = "mail"},
      {.handler = "bill \"x\"",
       .verdict = HandlerVerdict::transient_error,
       .failed = Attempt{3},
       .error = "bad\nü"},
      {.handler = "ship", .verdict = HandlerVerdict::unrecoverable_error, .error = "no"}};
  EXPECT_EQ(decode_results(encode_results(results)), results);
}

TEST(HandlerResults, NoneIsNoText) {
  EXPECT_EQ(encode_results({}), "");
  EXPECT_THAT(decode_results(""), IsEmpty());
}

TEST(HandlerResults, ErrorsAreValidTextAndCut) {
  const std::vector<HandlerResult> results{{.handler = "a", .error = std::string(5000, 'x')},
                                           {.handler = "b", .error = "\xff"}};
  const std::vector<HandlerResult> read = decode_results(encode_results(results));
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].error.size(), 4000U);
  EXPECT_EQ(read[1].error, "\xEF\xBF\xBD");
}

TEST(HandlerResults, NonsenseIsLeftOut) {
  EXPECT_THAT(decode_results("nonsense"), IsEmpty());
  EXPECT_THAT(decode_results("{}"), IsEmpty());
  EXPECT_THAT(decode_results(R"([1, {"handler": "a", "result": 7}, {"handler": 3, "failed": "x"}])"),
              ElementsAre(HandlerResult{}));
}

}  // namespace
}  // namespace postrider
