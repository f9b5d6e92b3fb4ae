// SPDX-License-Identifier: Apache-2.0
#include "core/ulid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>
#include <thread>
#include <unordered_set>

#include "postrider/error.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
constexpr std::string_view alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::uint64_t all_ones = ~std::uint64_t{0};

std::uint64_t time_of(const EventId& id) {
  std::uint64_t ms = 0;
  for (const char c : id.view().substr(0, 10)) ms = ms * 32 + alphabet.find(c);
  return ms;
}

TimePoint at_ms(std::int64_t ms) {
  return TimePoint{std::chrono::milliseconds{ms}};
}

TEST(Ulid, EncodesTimeAndRandomness) {
  ManualClock clock(at_ms(1469918176385));  // the example of the ULID specification
  std::uint64_t next = 0;
  UlidGenerator ulids(clock, [&] { return next++; });            // 0 and 1 at construction
  EXPECT_EQ(ulids.next().view(), "01ARYZ6S410010000000000003");  // 16 bits of 2, then 64 bits of 3
}

TEST(Ulid, CountsUpwardsWithinAMillisecond) {
  ManualClock clock(at_ms(1000));
  UlidGenerator ulids(clock, [] { return std::uint64_t{31}; });
  const EventId first = ulids.next();
  const EventId second = ulids.next();
  EXPECT_EQ(first.view().substr(24), "0Z");
  EXPECT_EQ(second.view().substr(24), "10");
  EXPECT_EQ(first.view().substr(0, 24), second.view().substr(0, 24));
}

TEST(Ulid, TakesNewRandomnessInANewMillisecond) {
  ManualClock clock(at_ms(1000));
  std::uint64_t next = 1000;
  UlidGenerator ulids(clock, [&] { return next += 1000; });
  const EventId first = ulids.next();
  clock.advance(1ms);
  const EventId second = ulids.next();
  EXPECT_EQ(time_of(second), time_of(first) + 1);
  EXPECT_NE(first.view().substr(10), second.view().substr(10));
}

TEST(Ulid, KeepsTheLastTimeWhenTheClockGoesBackwards) {
  ManualClock clock(at_ms(5000));
  UlidGenerator ulids(clock, [] { return std::uint64_t{7}; });
  const EventId before = ulids.next();
  clock.set_wall(at_ms(10));
  const EventId after = ulids.next();
  EXPECT_LT(before, after);
  EXPECT_EQ(time_of(after), 5000U);
  clock.set_wall(at_ms(5001));
  EXPECT_EQ(time_of(ulids.next()), 5001U);
}

TEST(Ulid, MovesTheTimeOnWhenTheCountOverflows) {
  ManualClock clock(at_ms(5000));
  UlidGenerator ulids(clock, [] { return all_ones; });
  const EventId last = ulids.next();
  EXPECT_EQ(last.view().substr(10), "ZZZZZZZZZZZZZZZZ");
  const EventId carried = ulids.next();
  EXPECT_LT(last, carried);
  EXPECT_EQ(time_of(carried), 5001U);
  clock.advance(1ms);  // the clock arrives where the ids are already
  const EventId again = ulids.next();
  EXPECT_LT(carried, again);
}

TEST(Ulid, CarriesFromTheLowerIntoTheUpperBits) {
  ManualClock clock(at_ms(5000));
  int call = 0;
  UlidGenerator ulids(clock, [&] { return call++ % 2 == 0 ? std::uint64_t{1} : all_ones; });
  const EventId first = ulids.next();
  const EventId second = ulids.next();
  EXPECT_LT(first, second);
  EXPECT_EQ(time_of(second), 5000U);
  EXPECT_EQ(second.view().substr(10), "0010000000000000");
}

TEST(Ulid, RefusesToRepeatAtTheEndOfTime) {
  ManualClock clock(at_ms(std::int64_t{1} << 48));
  UlidGenerator ulids(clock, [] { return all_ones; });
  EXPECT_EQ(ulids.next().view(), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
  for (int i = 0; i < 3; ++i) {
    try {
      (void)ulids.next();
      FAIL() << "an id after the last one";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_STREQ(
          error.what(),
          "postrider: cannot make a new event id: the clock is past the last ULID, in the year 10889. Hint: "
          "set the clock, or give events their ids yourself");
    }
  }
}

TEST(Ulid, WorksWithAClockBefore1970) {
  ManualClock clock(TimePoint{-1s});
  std::uint64_t next = 77;
  UlidGenerator ulids(clock, [&] { return next++; });
  const EventId first = ulids.next();
  EXPECT_EQ(time_of(first), 0U);
  EXPECT_LT(first, ulids.next());
  EXPECT_NE(first.view().substr(10), "0000000000000001") << "not random";
}

RC_GTEST_PROP(Ulid, AlwaysGrowsWhateverTheClockAndTheRandomnessDo, ()) {
  ManualClock clock(at_ms(1'000'000));
  std::mt19937_64 engine(*rc::gen::arbitrary<std::uint64_t>());
  // Many values near the overflow of either part.
  UlidGenerator ulids(clock, [&] { return engine() % 3 == 0 ? all_ones - engine() % 3 : engine(); });
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-5, 6));
  EventId last = ulids.next();
  for (const int step : steps) {
    clock.set_wall(clock.now() + std::chrono::milliseconds{step});
    const EventId id = ulids.next();
    RC_ASSERT(last < id);
    RC_ASSERT(id.view().size() == 26U);
    last = id;
  }
}

TEST(Ulid, GrowsAcrossThreadsAndNeverRepeats) {
  constexpr int threads = 6;
  constexpr int each = 4000;
  ManualClock clock(at_ms(1000));
  std::mt19937_64 engine(42);
  UlidGenerator ulids(clock, [&] { return all_ones - engine() % 5; });  // overflows every few ids
  Mutex mutex;
  EventId newest;
  std::vector<std::vector<EventId>> made(threads);
  std::atomic<int> disorder{0};
  {
    std::vector<std::jthread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        for (int i = 0; i < each; ++i) {
          EventId before;
          {
            const MutexLock lock(mutex);
            before = newest;
          }
          const EventId id = ulids.next();  // begun after `before` was made, by whichever thread
          if (!(before < id)) ++disorder;
          if (i % 100 == t) clock.set_wall(at_ms(1000 + (i * 37) % 500));  // back and forth
          made[static_cast<std::size_t>(t)].push_back(id);
          const MutexLock lock(mutex);
          newest = std::max(newest, id);
        }
      });
    }
  }
  EXPECT_EQ(disorder, 0);
  std::set<EventId> all;
  for (const auto& ids : made) {
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    all.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(all.size(), std::size_t{threads} * each);
}

TEST(NewEventId, IsUniqueAndSortedWithinAThread) {
  std::vector<EventId> ids;
  for (int i = 0; i < 20'000; ++i) ids.push_back(new_event_id());
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_EQ(std::set<EventId>(ids.begin(), ids.end()).size(), ids.size());
}

TEST(NewEventId, FirstUseByManyThreadsAtOnceRepeatsNothing) {
  // In a child, so that it is the first use there whatever ran before; threads compete for it.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<std::vector<EventId>> made(8);
    {
      std::vector<std::jthread> pool;
      for (auto& ids : made) {
        pool.emplace_back([&ids] {
          for (int i = 0; i < 200; ++i) ids.push_back(new_event_id());
        });
      }
    }
    std::set<EventId> all;
    for (const auto& ids : made) all.insert(ids.begin(), ids.end());
    _exit(all.size() == 1600 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// The upper 50 random bits of new ids, until three milliseconds have given theirs.
std::set<std::string> random_beginnings() {
  std::set<std::string> beginnings;
  while (beginnings.size() < 3) beginnings.insert(new_event_id().str().substr(10, 10));
  return beginnings;
}

// Looking for equal ids alone would seldom find a shared generator: parent and child rarely meet in a
// millisecond. Equal random bits show it every time.
TEST(NewEventId, DoesNotRepeatAfterFork) {
  constexpr std::size_t generations = 3;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::set<std::string> all{
      new_event_id().str().substr(10, 10)};  // the parent's generator exists, and is copied
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A chain: every child forks the next one, as process managers do.
    int failed = 0;
    for (std::size_t generation = 1;; ++generation) {
      std::string out;
      for (const std::string& bits : random_beginnings()) out += bits;
      if (write(ends[1], out.data(), out.size()) != static_cast<ssize_t>(out.size())) failed = 1;
      if (generation == generations) _exit(failed);
      const pid_t next = fork();
      if (next != 0) {
        int status = 0;
        if (next < 0 || waitpid(next, &status, 0) != next || status != 0) failed = 1;
        _exit(failed);
      }
    }
  }
  all.merge(random_beginnings());
  const std::size_t of_parent = all.size();
  close(ends[1]);
  std::string in;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    in.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(in.size(), 10 * 3 * generations);
  for (std::size_t i = 0; i < in.size(); i += 10) all.insert(in.substr(i, 10));
  EXPECT_EQ(all.size(), of_parent + 3 * generations);
}

TEST(EventId, KeepsWhatItIsGiven) {
  const EventId uuid("7f5a3c1e-2b4d-4e6f-8a9b-0c1d2e3f4a5b");
  EXPECT_EQ(uuid.str(), "7f5a3c1e-2b4d-4e6f-8a9b-0c1d2e3f4a5b");
  EXPECT_FALSE(uuid.empty());
  EXPECT_TRUE(EventId().empty());
  EXPECT_EQ(EventId("a"), EventId("a"));
  EXPECT_LT(EventId("a"), EventId("ab"));
  EXPECT_EQ(std::unordered_set<EventId>({EventId("a"), EventId("a"), EventId("b")}).size(), 2U);
}

TEST(EventId, RefusesWhatNoColumnWouldKeep) {
  const auto message = [](std::string_view text) -> std::string {
    try {
      return "accepted " + EventId(text).str();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
  };
  EXPECT_EQ(message(""),
            "postrider: '' cannot be an event id: it must be 1 to 36 printable ASCII characters without "
            "spaces, this "
            "has 0 bytes. Hint: give a ULID or a UUID, or none to get a new ULID");
  EXPECT_EQ(message(std::string(36, 'x')), "accepted " + std::string(36, 'x'));
  EXPECT_THAT(message(std::string(37, 'x')), ::testing::HasSubstr("this has 37 bytes"));
  EXPECT_THAT(message("a b"), ::testing::HasSubstr("'a b' cannot be an event id"));
  EXPECT_THAT(message("a\n"), ::testing::HasSubstr("cannot be an event id"));
  EXPECT_THAT(message("\x7f"), ::testing::HasSubstr("cannot be an event id"));
  EXPECT_THAT(message("\xC3\xA4"), ::testing::HasSubstr("this has 2 bytes"));
  EXPECT_THAT(message(std::string_view("a\0b", 3)), ::testing::HasSubstr("a\xEF\xBF\xBD"
                                                                         "b"));
}

}  // namespace
}  // namespace postrider
