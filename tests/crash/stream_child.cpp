// SPDX-License-Identifier: Apache-2.0
// Writers of the storm, on one event store:
//
//   stream_child URL SCHEMA SEED WRITERS APPENDS FILE
//
// Each append says in its events which query it was conditional on and the position it had seen, and how many
// events belong to it, so that the test can recompute the decision. A refused one is a line of the file: its
// query, the position it had seen, and that of the event that it was told to be in conflict with. Says "half"
// in the middle, and "done ACCEPTED" at the end.
#include <atomic>
#include <random>
#include <string>
#include <thread>

#include "postrider/postrider.hpp"
#include "support/child_main.hpp"
#include "support/stream_storm.hpp"

namespace postrider::test {
namespace {

class Writer {
 public:
  Writer(Storage& storage, EventStore& store, const LineFile& refused, unsigned seed)
      : storage_(storage), store_(store), refused_(refused), random_(seed) {}

  /// Whether it was accepted.
  bool append() {
    const unsigned query = draw(100'000);
    const bool conditional = draw(10) != 0;
    std::int64_t after = -1;
    if (conditional && draw(20) != 0) {
      // Mostly what it has just read; at times something old.
      after = static_cast<std::int64_t>(store_.head());
      if (draw(4) == 0) after = std::max<std::int64_t>(0, after - draw(60));
    }
    std::vector<AppendEvent> events;
    const unsigned count = 1 + draw(3);
    for (unsigned i = 0; i < count; ++i) {
      events.push_back(AppendEvent::builder(storm_type(draw(10)))
                           .tags(storm_tags(1U << draw(10) | 1U << draw(10)))
                           .data("[" + std::to_string(conditional ? static_cast<int>(query) : -1) + "," +
                                 std::to_string(after) + "," + std::to_string(i) + "," +
                                 std::to_string(count) + "]"));
    }
    AppendCondition condition{.query = storm_query(query)};
    if (after >= 0) condition.after = Position{after};
    // A tenth in transactions of the user's own, some of which are rolled back.
    if (draw(10) == 0) {
      Transaction tx = storage_.begin();
      const AppendResult result =
          conditional ? store_.append_if(tx, events, condition) : AppendResult(store_.append(tx, events));
      if (!accepted(result, query, after) || draw(3) == 0) return false;
      tx.commit();
      return true;
    }
    if (!conditional) {
      store_.append(events);
      return true;
    }
    return accepted(store_.append_if(events, condition), query, after);
  }

 private:
  [[nodiscard]] bool accepted(const AppendResult& result, unsigned query, std::int64_t after) const {
    const auto* const conflict = std::get_if<Conflict>(&result);
    if (conflict == nullptr) return true;
    refused_.write(std::to_string(query) + " " + std::to_string(after) + " " +
                   std::to_string(static_cast<std::int64_t>(conflict->position)));
    return false;
  }
  unsigned draw(unsigned below) { return std::uniform_int_distribution<unsigned>(0, below - 1)(random_); }

  Storage& storage_;
  EventStore& store_;
  const LineFile& refused_;
  std::mt19937 random_;
};

int run(int argc, char** argv) {
  if (argc != 7) throw std::invalid_argument("usage: stream_child URL SCHEMA SEED WRITERS APPENDS FILE");
  StorageOptions options;
  options.schema = Identifier(std::string(argv[2]));
  const std::unique_ptr<Storage> storage = open(argv[1], options);
  EventStore store(*storage);
  const auto seed = static_cast<unsigned>(std::stoul(argv[3]));
  const long appends = std::stol(argv[5]);
  const LineFile refused(argv[6]);
  std::atomic<long> left{appends};
  std::atomic<long> done{0};
  std::atomic<long> accepted{0};
  std::vector<std::jthread> writers;
  for (int i = 0; i < std::stoi(argv[4]); ++i) {
    writers.emplace_back([&, i] {
      Writer writer(*storage, store, refused, seed * 1000 + static_cast<unsigned>(i));
      while (left-- > 0) {
        try {
          if (writer.append()) ++accepted;
        } catch (const Error& error) {
          if (!error.retryable()) throw;  // a deadlock of two users' transactions is the user's to repeat
          ++left;
          continue;
        }
        if (++done == appends / 2) say("half");
      }
    });
  }
  writers.clear();
  say("done " + std::to_string(accepted));
  return 0;
}

}  // namespace
}  // namespace postrider::test

int main(int argc, char** argv) {
  return postrider::test::child_main(argc, argv, postrider::test::run);
}
