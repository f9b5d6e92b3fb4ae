// SPDX-License-Identifier: Apache-2.0
#include "core/what_of.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace postrider {
namespace {

struct Speechless : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

TEST(WhatOf, AnExceptionWithoutAMessageHasOneToo) {
  EXPECT_EQ(what_of(std::runtime_error("no luck")), "no luck");
  EXPECT_EQ(what_of(Speechless{}), "an exception without a message");
}

}  // namespace
}  // namespace postrider
