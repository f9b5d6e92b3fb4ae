// SPDX-License-Identifier: Apache-2.0
#include "storage/claim_cursor.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

using namespace std::chrono_literals;
using Position = ClaimCursor::Position;

const TimePoint noon{std::chrono::seconds{1'700'000'000}};
const SteadyPoint start{std::chrono::hours{1}};

void three_scans(ClaimCursor& cursor, Duration cost, SteadyPoint at) {
  for (int i = 0; i < 3; ++i) cursor.full_scan_took(cost, at);
}

TEST(ClaimCursor, EveryScanIsFullWhileThatIsCheap) {
  ClaimCursor cursor;
  EXPECT_TRUE(cursor.next(start).full);
  cursor.claimed(0, {noon, 7});
  three_scans(cursor, ScanThrottle::cheap - 1us, start);
  const ClaimCursor::Scan scan = cursor.next(start);
  EXPECT_TRUE(scan.full);
  for (const auto& after : scan.after) EXPECT_FALSE(after.has_value()) << "a full scan leaves nothing out";
}

TEST(ClaimCursor, AnExpensiveFullScanRestsTwentyTimesAsLong) {
  ClaimCursor cursor;
  three_scans(cursor, 5ms, start);
  EXPECT_FALSE(cursor.next(start).full);
  EXPECT_FALSE(cursor.full_allowed(start + 100ms - 1us));
  EXPECT_TRUE(cursor.full_allowed(start + 100ms));
  EXPECT_TRUE(cursor.next(start + 100ms).full);
}

TEST(ClaimCursor, TailScansBeginBehindTheLastRowOfEachLevel) {
  ClaimCursor cursor;
  three_scans(cursor, 5ms, start);
  cursor.claimed(9, {noon, 3});
  cursor.claimed(0, {noon + 1s, 1});
  const ClaimCursor::Scan scan = cursor.next(start);
  EXPECT_EQ(scan.after[9], (Position{noon, 3}));
  EXPECT_EQ(scan.after[0], (Position{noon + 1s, 1}));
  EXPECT_FALSE(scan.after[4].has_value()) << "nothing was claimed there yet";
}

TEST(ClaimCursor, APositionNeverGoesBack) {
  ClaimCursor cursor;
  three_scans(cursor, 5ms, start);
  cursor.claimed(0, {noon, 5});
  cursor.claimed(0, {noon - 1s, 9});
  cursor.claimed(0, {noon, 4});
  EXPECT_EQ(cursor.next(start).after[0], (Position{noon, 5}));
  cursor.claimed(0, {noon, 6});
  EXPECT_EQ(cursor.next(start).after[0], (Position{noon, 6}));
}

TEST(ClaimCursor, OneSlowScanIsTakenForAnAccident) {
  ClaimCursor cursor;
  cursor.full_scan_took(1s, start);
  cursor.full_scan_took(1s, start);
  EXPECT_TRUE(cursor.next(start).full);
  cursor.full_scan_took(2ms, start);
  EXPECT_FALSE(cursor.next(start).full) << "three are not";
  EXPECT_TRUE(cursor.next(start + 40ms).full) << "and the least of them counts";
}

TEST(ClaimCursor, OneCheapFullScanEndsTheRest) {
  ClaimCursor cursor;
  three_scans(cursor, 1s, start);
  ASSERT_FALSE(cursor.next(start + 1s).full);
  cursor.full_scan_took(10us, start + 20s);
  EXPECT_TRUE(cursor.next(start + 20s).full);
}

TEST(ClaimCursor, APriorityOutOfBoundsIsKeptWithinThem) {
  ClaimCursor cursor;
  three_scans(cursor, 5ms, start);
  cursor.claimed(4711, {noon, 3});
  cursor.claimed(-1, {noon, 4});
  EXPECT_EQ(cursor.next(start).after[9], (Position{noon, 3}));
  EXPECT_EQ(cursor.next(start).after[0], (Position{noon, 4}));
}

}  // namespace
}  // namespace postrider
