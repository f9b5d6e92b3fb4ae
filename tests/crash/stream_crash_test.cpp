// SPDX-License-Identifier: Apache-2.0
// A process that appends is killed right before and right after its commit. What it left is all or nothing,
// without a gap, and nobody has to wait for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "postrider/postrider.hpp"
#include "support/crash_test.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

class StreamCrash : public CrashTest {
 protected:
  StreamCrash() : CrashTest(test::crash_child("stream_append_child")) {}
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> tables() const override {
    return {{"effect", "n bigint not null"}};
  }

  /// What there is by now, if everything is right.
  struct Books {
    std::int64_t events = 0;
    std::int64_t appends = 0;
  };
  struct Kill {
    const char* point = nullptr;
    bool stays = false;  ///< what the killed one was at
    bool own = false;    ///< in the user's transaction
  };
  static constexpr std::int64_t of_the_next = 1;

  /// The child dies at its append number `pass`, which has so many events.
  void kill_at(const Kill& kill, int pass, std::int64_t events, Books& books) {
    const std::string run = std::to_string(++runs_);
    const std::string name = point(kill.point);
    SCOPED_TRACE(name + "@" + std::to_string(pass) + ", " + std::to_string(events) + " events");
    const auto effects = number("select count(*) from " + table("effect"));
    const auto child = start({run, "count=" + std::to_string(pass + 1), "events=" + std::to_string(events),
                              std::string("own=") + (kill.own ? "1" : "0")},
                             name + "=kill@" + std::to_string(pass));
    std::int64_t told = 0;
    while (child->read_until("appended")) ++told;
    const ProcessEnd end = child->kill();
    ASSERT_TRUE(end.killed()) << end.text();
    EXPECT_EQ(told, pass - 1) << "told before it was durable";

    // The killed one again, by another process, at once.
    EventStore store(*storage_);
    const Tags tags{{"append", std::to_string(pass)}, {"run", run}};
    const AppendEvent again = AppendEvent::builder("Appended").tags(tags).data("0").build();
    const auto begin = std::chrono::steady_clock::now();
    const AppendResult result = store.append_if({again}, {.query = Query::tags(tags)});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s) << "it left a lock behind";
    const std::int64_t there = pass - 1 + (kill.stays ? 1 : 0);
    books.events += there * events;
    books.appends += there;
    if (kill.stays) {
      ASSERT_TRUE(std::holds_alternative<Conflict>(result)) << "the append was lost";
      EXPECT_EQ(std::get<Conflict>(result).position, Position{books.events});
    } else {
      ASSERT_TRUE(std::holds_alternative<Appended>(result)) << "the append left something behind";
      EXPECT_EQ(std::get<Appended>(result).first, Position{books.events + 1}) << "a gap";
      books.events += of_the_next;
    }
    // Found by its tags, whole and in order.
    for (int n = 1; n <= pass; ++n) {
      std::vector<std::string> data;
      for (const StoredEvent& event :
           store.read(Query::tags({{"append", std::to_string(n)}, {"run", run}}))) {
        data.emplace_back(event.data());
      }
      const std::int64_t expected = n < pass || kill.stays ? events : of_the_next;
      ASSERT_EQ(static_cast<std::int64_t>(data.size()), expected) << "append " << n;
      for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], std::to_string(i));
    }
    EXPECT_EQ(number("select count(*) from " + table("effect")) - effects, kill.own ? there : 0);
  }

  int runs_ = 0;
};

TEST_P(StreamCrash, AnAppendIsThereWhollyOrNotAtAllWhereverItsProcessIsKilled) {
  Books books;
  for (const Kill& kill : {Kill{.point = "<backend>.stream.before_commit"},
                           Kill{.point = "<backend>.stream.after_commit", .stays = true},
                           Kill{.point = "<backend>.commit.before", .own = true},
                           Kill{.point = "<backend>.commit.after", .stays = true, .own = true}}) {
    kill_at(kill, 1, 3, books);
    kill_at(kill, 3, 3, books);
    kill_at(kill, 1, 6'000, books);  // more than goes into one statement
    if (HasFailure()) return;
  }
  std::int64_t last = 0;
  for (const StoredEvent& event : EventStore(*storage_).read()) {
    ASSERT_EQ(static_cast<std::int64_t>(event.position()), ++last) << "a gap";
  }
  EXPECT_EQ(last, books.events);
  // Neither in the index nor beside it.
  EXPECT_EQ(number("select count(distinct event_id) from " + table("events")), books.events);
  EXPECT_EQ(number("select count(distinct position) from " + table("event_tags")), books.events);
  EXPECT_EQ(number("select max(position) from " + table("event_tags")), books.events);
}

POSTRIDER_FOR_EACH_CRASH_BACKEND(StreamCrash);

}  // namespace
}  // namespace postrider::test
