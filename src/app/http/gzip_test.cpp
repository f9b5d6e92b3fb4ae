// SPDX-License-Identifier: Apache-2.0
#include "app/http/gzip.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "app/http/gzip_fixture.hpp"

namespace postrider::http {
namespace {

using test::gzipped;

bool always(std::size_t /*bytes*/) {
  return true;
}
std::string unpacked(std::string_view packed, std::size_t limit = 1U << 20U) {
  return std::get<std::string>(unpack_gzip(packed, limit, always));
}
UnpackFault fault(std::string_view packed, std::size_t limit = 1U << 20U) {
  const auto result = unpack_gzip(packed, limit, always);
  return std::holds_alternative<UnpackFault>(result) ? std::get<UnpackFault>(result) : UnpackFault{99};
}

RC_GTEST_PROP(Gzip, WhatWasPackedComesBack, (const std::string& text)) {
  RC_ASSERT(unpacked(gzipped(text)) == text);
  RC_ASSERT(unpacked(gzipped(text) + gzipped("and more")) == text + "and more");
}

TEST(Gzip, TheLimitIsExact) {
  const std::string text(200'000, 'x');
  EXPECT_EQ(unpacked(gzipped(text), 200'000), text);
  EXPECT_EQ(fault(gzipped(text), 199'999), UnpackFault::too_large);
  EXPECT_EQ(unpacked(gzipped(""), 0), "");
}

TEST(Gzip, ABombCostsNoMoreThanTheLimit) {
  const std::string bomb = gzipped(std::string(64U << 20U, '\0'));
  ASSERT_LT(bomb.size(), 100'000U);
  std::size_t taken = 0;
  const auto result = unpack_gzip(bomb, 100'000, [&](std::size_t bytes) {
    taken += bytes;
    return true;
  });
  EXPECT_EQ(std::get<UnpackFault>(result), UnpackFault::too_large);
  EXPECT_LE(taken, 100'001U);
}

TEST(Gzip, MemoryThatIsRefusedIsNotTaken) {
  const auto result =
      unpack_gzip(gzipped(std::string(1'000'000, 'x')), 2'000'000, [](std::size_t) { return false; });
  EXPECT_EQ(std::get<UnpackFault>(result), UnpackFault::no_memory);
}

TEST(Gzip, WhatIsDamagedIsSaidToBe) {
  const std::string packed = gzipped("an event, and another event, and another event");
  EXPECT_EQ(fault(""), UnpackFault::damaged);
  EXPECT_EQ(fault("plain text"), UnpackFault::damaged);
  EXPECT_EQ(fault(packed + "behind its end"), UnpackFault::damaged);
  for (std::size_t length = 0; length < packed.size(); ++length) {
    EXPECT_EQ(fault(packed.substr(0, length)), UnpackFault::damaged) << length;
  }
  std::string broken = packed;
  broken[broken.size() - 6] = static_cast<char>(broken[broken.size() - 6] ^ 1);  // of the checksum
  EXPECT_EQ(fault(broken), UnpackFault::damaged);
}

}  // namespace
}  // namespace postrider::http
