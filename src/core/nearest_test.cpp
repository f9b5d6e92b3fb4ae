// SPDX-License-Identifier: Apache-2.0
#include "core/nearest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace postrider {
namespace {

TEST(Nearest, FindsWhatWasMeant) {
  constexpr std::array<std::string_view, 5> known{"queue-capacity", "batch-size", "ring", "ring-bytes",
                                                  "fsync"};
  EXPECT_EQ(nearest_of("queue-capacty", known), "queue-capacity");
  EXPECT_EQ(nearest_of("queue_capacity", known), "queue-capacity");
  EXPECT_EQ(nearest_of("queueCapacity", known), "queue-capacity");
  EXPECT_EQ(nearest_of("batch-szie", known), "batch-size");
  EXPECT_EQ(nearest_of("RING", known), "ring");
  EXPECT_EQ(nearest_of("ring-byte", known), "ring-bytes");
  EXPECT_EQ(nearest_of("fsnyc", known), "fsync") << "two letters swapped are one mistake";
}

TEST(Nearest, DoesNotGuess) {
  constexpr std::array<std::string_view, 2> known{"queue-capacity", "ring"};
  EXPECT_EQ(nearest_of("colour", known), "");
  EXPECT_EQ(nearest_of("", known), "");
  EXPECT_EQ(nearest_of("ri", known), "");
  EXPECT_EQ(nearest_of(std::string(10'000, 'q'), known), "");
  EXPECT_EQ(nearest_of("ring", {}), "");
}

}  // namespace
}  // namespace postrider
