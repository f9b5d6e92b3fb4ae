// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/entry_store.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SearchWords, PunctuationAndWhiteSpacePartThem) {
  EXPECT_THAT(search_words("Booking BK-2026_001,\n\"done\""),
              ElementsAre("booking", "bk", "2026", "001", "done"));
  EXPECT_THAT(search_words(" \t-*\"'() "), IsEmpty());
  EXPECT_THAT(search_words(""), IsEmpty());
}

TEST(SearchWords, EachComesOnceInLowerCase) {
  EXPECT_THAT(search_words("Pay pay PAY paid"), ElementsAre("pay", "paid"));
}

TEST(SearchWords, OtherAlphabetsStayWhole) {
  EXPECT_THAT(search_words("für Müller (日本)"), ElementsAre("für", "müller", "日本"));
}

}  // namespace
}  // namespace postrider
