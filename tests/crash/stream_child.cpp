// SPDX-License-Identifier: Apache-2.0
// Writers of the storm, on one event store:
//
//   stream_child URL SCHEMA SEED WRITERS APPENDS
//
// Each append says in its events which query it was conditional on and the position it had seen, and how many
// events belong to it, so that the test can recompute the decision. Says "a" for each append that was
// accepted or refused, and "done ACCEPTED CONFLICTS" at the end.
#include <atomic>
#include <iostream>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "postrider/postrider.hpp"
#include "support/stream_storm.hpp"

namespace postrider::test {
namespace {

class Writer {
 public:
  Writer(Storage& storage, EventStore& store, unsigned seed)
      : storage_(storage), store_(store), random_(seed) {}

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
      if (draw(3) == 0 || std::holds_alternative<Conflict>(result)) return false;
      tx.commit();
      return true;
    }
    if (!conditional) {
      store_.append(events);
      return true;
    }
    return std::holds_alternative<Appended>(store_.append_if(events, condition));
  }

 private:
  unsigned draw(unsigned below) { return std::uniform_int_distribution<unsigned>(0, below - 1)(random_); }

  Storage& storage_;
  EventStore& store_;
  std::mt19937 random_;
};

int run(int argc, char** argv) {
  if (argc != 6) throw std::invalid_argument("usage: stream_child URL SCHEMA SEED WRITERS APPENDS");
  StorageOptions options;
  options.schema = Identifier(std::string(argv[2]));
  const std::unique_ptr<Storage> storage = open(argv[1], options);
  EventStore store(*storage);
  const auto seed = static_cast<unsigned>(std::stoul(argv[3]));
  std::atomic<long> left{std::stol(argv[5])};
  std::atomic<long> accepted{0};
  std::atomic<long> conflicts{0};
  std::mutex output;
  std::vector<std::jthread> writers;
  for (int i = 0; i < std::stoi(argv[4]); ++i) {
    writers.emplace_back([&, i] {
      Writer writer(*storage, store, seed * 1000 + static_cast<unsigned>(i));
      while (left-- > 0) {
        try {
          ++(writer.append() ? accepted : conflicts);
        } catch (const Error& error) {
          if (!error.retryable()) throw;  // a deadlock of two users' transactions is the user's to repeat
          ++left;
          continue;
        }
        const std::lock_guard lock(output);
        std::cout << "a\n" << std::flush;
      }
    });
  }
  writers.clear();
  std::cout << "done " << accepted << " " << conflicts << std::endl;
  return 0;
}

}  // namespace
}  // namespace postrider::test

int main(int argc, char** argv) {
  try {
    return postrider::test::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "stream_child: " << error.what() << "\n";
    return 1;
  }
}
