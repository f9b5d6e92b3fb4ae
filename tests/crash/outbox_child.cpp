// SPDX-License-Identifier: Apache-2.0
// A shop that the crash tests kill: publishes orders in transactions, delivers them, and notes each delivery
// in a file.
//
//   outbox_child URL SCHEMA NOTES GENERATION [option=value ...]
//
// Says on stdout, one line each: "ready", "c" for every transaction that has ended, "d" for every delivery,
// "waiting ID" when a listener waits, "published" when all is published, and at the end "failpoint NAME" for
// each one passed. A line "go" on stdin lets waiting listeners go on; the end of stdin stops the outbox and
// the program.
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/failpoint.hpp"
#include "postrider/postrider.hpp"
#include "postrider/testing.hpp"
#include "support/balance.hpp"
#include "support/child_main.hpp"
#include "support/shop.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using testing::RecordingMetrics;

struct Settings {
  std::string url;
  std::string schema;
  std::string notes;
  int generation = 0;
  std::map<std::string, long>
      numbers{
          {"transactions", 0},  // per publisher; -1: until killed
          {"drain", 0},         // 1: end when nothing is pending, without waiting for the end of stdin
          {"migrate", 1},         {"publishers", 2}, {"lane", 0},      {"workers", 4},
          {"lease", 1000},        {"poll", 40},      {"capacity", 16}, {"attempts", 3},
          {"batch", 20},          {"wait", 0},  // 1: listeners wait for orders that say so
          {"fail_after_wait", 0},
      };

  [[nodiscard]] long operator[](const std::string& name) const { return numbers.at(name); }
  [[nodiscard]] std::size_t size(const std::string& name) const {
    return static_cast<std::size_t>(numbers.at(name));
  }
};

Settings parse(int argc, char** argv) {
  if (argc < 5)
    throw std::invalid_argument("usage: outbox_child URL SCHEMA NOTES GENERATION [option=value ...]");
  Settings settings{.url = argv[1], .schema = argv[2], .notes = argv[3], .generation = std::stoi(argv[4])};
  settings.numbers = child_numbers(argc, argv, 5, std::move(settings.numbers));
  return settings;
}

/// Holds listeners until "go".
class Gate {
 public:
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

class Clerk {
 public:
  Clerk(const Settings& settings, const NoteFile& notes, Gate& gate)
      : notes_(notes),
        gate_(gate),
        last_attempt_(static_cast<int>(settings["attempts"])),
        waits_(settings["wait"] != 0),
        fails_after_wait_(settings["fail_after_wait"]) {}

  Outcome deliver(const Event& event, const Delivery& delivery) {
    const Order order = order_of(event);
    const Outcome outcome = decide(order, static_cast<int>(delivery.failed));
    const bool last = static_cast<int>(delivery.failed) + 1 >= last_attempt_;
    switch (outcome.kind()) {
      case Outcome::Kind::done:
        notes_.write(Note::What::done, order);
        break;
      case Outcome::Kind::retry_after:
        notes_.write(Note::What::later, order);
        break;
      case Outcome::Kind::failed:
        notes_.write(last ? Note::What::dead : Note::What::failed, order);
        break;
      case Outcome::Kind::dead:
        notes_.write(Note::What::dead, order);
        break;
    }
    say("d");
    if (outcome.kind() == Outcome::Kind::failed) throw std::runtime_error(outcome.reason());
    return outcome;
  }

 private:
  Outcome decide(const Order& order, int failed) {
    switch (order.fate) {
      case Fate::ok:
        return Outcome::done();
      case Fate::flaky:
        return failed == 0 ? Outcome::failed("flaky") : Outcome::done();
      case Fate::later: {
        const std::lock_guard lock(mutex_);
        return postponed_.insert(order.id).second ? Outcome::retry_after(20ms) : Outcome::done();
      }
      case Fate::dead:
        return Outcome::dead("refused");
      case Fate::hopeless:
        return Outcome::failed("hopeless");
      case Fate::waits:
        break;
    }
    if (!waits_) return Outcome::done();
    say("waiting " + order.id.str());
    gate_.pass();
    return fails_after_wait_-- > 0 ? Outcome::failed("too late") : Outcome::done();
  }

  const NoteFile& notes_;
  Gate& gate_;
  const int last_attempt_;
  const bool waits_;
  std::atomic<long> fails_after_wait_;
  std::mutex mutex_;
  std::set<EventId> postponed_;
};

/// One thread that places orders. Its lane and its keys are its own, so their numbers are committed in order.
class Publisher {
 public:
  Publisher(Storage& storage, Outbox& outbox, const Settings& settings, const NoteFile& notes, int lane)
      : storage_(storage),
        outbox_(outbox),
        shop_(storage, settings.schema),
        notes_(notes),
        transactions_(settings["transactions"]),
        lane_(lane),
        number_(std::int64_t{1'000'000} * settings.generation),
        random_(static_cast<unsigned>(settings.generation * 64 + lane)) {}

  void run() {
    for (long i = 0; transactions_ < 0 || i < transactions_; ++i) {
      try {
        place_orders();
      } catch (const Error& error) {
        if (!error.retryable()) throw;  // a busy database is no fault of ours
      }
      say("c");
    }
  }

 private:
  [[nodiscard]] bool chance(int percent) {
    return std::uniform_int_distribution<int>(1, 100)(random_) <= percent;
  }

  [[nodiscard]] Fate any_fate() {
    const int dice = std::uniform_int_distribution<int>(1, 100)(random_);
    if (dice <= 10) return Fate::flaky;
    if (dice <= 15) return Fate::later;
    if (dice <= 18) return Fate::dead;
    return dice <= 20 ? Fate::hopeless : Fate::ok;
  }

  [[nodiscard]] Order any_order() {
    Order order{new_event_id(), {}, ++number_, any_fate()};
    if (chance(40)) order.key = "lane" + std::to_string(lane_) + "/" + std::to_string(number_ % 3);
    return order;
  }

  void place_orders() {
    const bool rolled_back = chance(15);
    std::vector<Order> orders{any_order()};
    if (chance(30)) {
      for (int i = std::uniform_int_distribution<int>(1, 4)(random_); i > 0; --i)
        orders.push_back(any_order());
    }
    std::vector<Event> events;
    for (const Order& order : orders) {
      EventBuilder builder = event_of(order);
      // An ordered one would hold its key back for that long.
      if (order.key.empty() && chance(10)) builder.deliver_at(Clock::system().now() + 50ms);
      events.push_back(builder.build());
      if (rolled_back) notes_.write(Note::What::rolled_back, order);
    }
    auto tx = storage_.begin();
    shop_.enter_lane(tx, lane_);
    for (const Order& order : orders) shop_.insert(tx, order);
    if (events.size() == 1) {
      outbox_.publish(tx, events.front());
    } else {
      outbox_.publish(tx, events);
    }
    rolled_back ? tx.rollback() : tx.commit();
  }

  Storage& storage_;
  Outbox& outbox_;
  const Shop shop_;
  const NoteFile& notes_;
  const long transactions_;
  const int lane_;
  std::int64_t number_;
  std::mt19937 random_;
};

void await_nothing_pending(Outbox& outbox, const RecordingMetrics& metrics) {
  while (outbox.admin().counts().pending > 0) {
    // Rows of the dead come free with their leases, which nobody tells: so not for ever.
    const auto flushes = metrics.get(RecordingMetrics::Counter::flushes);
    (void)metrics.await(RecordingMetrics::Counter::flushes, flushes + 1, 50ms);
  }
}

OutboxOptions options_of(const Settings& settings, RecordingMetrics& metrics) {
  OutboxOptions options;
  options.workers = settings.size("workers");
  options.hot_queue_capacity = settings.size("capacity");
  options.cold_queue_capacity = settings.size("capacity");
  options.poller_interval = std::chrono::milliseconds{settings["poll"]};
  options.poller_batch_size = settings.size("batch");
  options.completer_batch_size = 32;
  options.retry_base_delay = 5ms;
  options.retry_max_delay = 40ms;
  options.retry_max_attempts = static_cast<int>(settings["attempts"]);
  options.lease = std::chrono::milliseconds{settings["lease"]};
  options.metrics = &metrics;
  auto log = std::make_shared<std::ofstream>(settings.notes + ".log", std::ios::app);
  auto mutex = std::make_shared<std::mutex>();
  options.log = [log, mutex, generation = settings.generation](LogLevel, std::string_view message) {
    const std::lock_guard lock(*mutex);
    *log << generation << ": " << message << std::endl;
  };
  return options;
}

int serve(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  const NoteFile notes(settings.notes, settings.generation);
  StorageOptions storage_options;
  storage_options.schema = Identifier(settings.schema);
  const auto storage = open(settings.url, storage_options);
  if (settings["migrate"] != 0) storage->migrate();

  RecordingMetrics metrics;
  Gate gate;
  Clerk clerk(settings, notes, gate);
  Outbox outbox(*storage, options_of(settings, metrics));
  outbox.on("OrderPlaced", [&](const Event& e, const Delivery& d) { return clerk.deliver(e, d); });
  outbox.start();
  say("ready");

  std::thread commands([&] {
    for (std::string line; std::getline(std::cin, line);) {
      if (line == "go") gate.open();
    }
    gate.open();
  });
  std::vector<std::thread> publishers;
  if (settings["transactions"] != 0) {
    for (int i = 0; i < settings["publishers"]; ++i) {
      publishers.emplace_back([&, lane = static_cast<int>(settings["lane"]) + i] {
        Publisher(*storage, outbox, settings, notes, lane).run();
      });
    }
  }
  for (std::thread& publisher : publishers) publisher.join();
  say("published");
  if (settings["drain"] != 0) {
    await_nothing_pending(outbox, metrics);
  } else {
    commands.join();
  }
  outbox.stop();
  const OutboxCounts counts = outbox.admin().counts();
  say("report pending " + std::to_string(counts.pending) + " done " + std::to_string(counts.done) + " dead " +
      std::to_string(counts.dead) + " stale " +
      std::to_string(metrics.get(RecordingMetrics::Counter::stale_completions)));
#if defined(POSTRIDER_FAILPOINTS)
  for (const std::string& name : failpoints::seen()) say("failpoint " + name);
#endif
  ::_exit(0);  // the thread that reads stdin may still wait for a line
}

}  // namespace
}  // namespace postrider::test

int main(int argc, char** argv) {
  return postrider::test::child_main(argc, argv, postrider::test::serve);
}
