// SPDX-License-Identifier: Apache-2.0
// A node that the crash tests kill: runs three handlers over a queue.
//
//   queue_child URL SCHEMA [option=value ...]
//
// - "count" notes each run; - "effect" writes a row and completes in its own transaction; - "shaky" fails now
// and then, and is sometimes slow, at times slower than the lease. An event with the payload "abort" takes
// the process down. Says "ready" once, then "h" for every event handled; the end of stdin stops it.
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "postrider/postrider.hpp"
#include "support/child_main.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

struct Settings {
  std::string url;
  std::string schema;
  ChildNumbers numbers{{"workers", 8}, {"lease", 300}, {"crashes", 0},
                       {"batch", 40},  {"seed", 1},    {"slow", 50}};
};

Settings parse(int argc, char** argv) {
  if (argc < 3) throw std::invalid_argument("usage: queue_child URL SCHEMA [option=value ...]");
  Settings settings{.url = argv[1], .schema = argv[2]};
  settings.numbers = child_numbers(argc, argv, 3, std::move(settings.numbers));
  return settings;
}

/// Random numbers for handlers, which run on several threads.
class Dice {
 public:
  explicit Dice(long seed) : engine_(static_cast<unsigned>(seed)) {}
  unsigned operator()(unsigned below) {
    const std::lock_guard lock(mutex_);
    return std::uniform_int_distribution<unsigned>(0, below - 1)(engine_);
  }

 private:
  std::mutex mutex_;
  std::mt19937 engine_;
};

int run(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  const std::string& schema = settings.schema;
  const auto storage = open(settings.url, {.pool_size = 16, .schema = Identifier(schema)});
  const std::string table =
      (storage->kind() == BackendKind::postgres ? schema + "." : schema + "_") + "effect";
  EventQueue queue(*storage, {.abandoned_timeout = std::chrono::milliseconds(settings.numbers.at("lease")),
                              .max_crashes = static_cast<int>(settings.numbers.at("crashes")),
                              .log = [](LogLevel, std::string_view) {}});
  EventManagerOptions options;
  options.workers = static_cast<std::size_t>(settings.numbers.at("workers"));
  options.batch_size = static_cast<std::size_t>(settings.numbers.at("batch"));
  options.max_attempts = 1'000'000;
  options.retry_base_delay = 1ms;
  options.retry_max_delay = 20ms;
  options.poll_interval = 5ms;
  options.poll_interval_max = 20ms;
  EventManager manager(queue, options);
  Dice dice(settings.numbers.at("seed"));
  manager
      .register_handler_for_all("count",
                                [](const Event& event) {
                                  if (event.payload() == R"("abort")") std::abort();
                                })
      .register_handler_for_all("effect",
                                [&](const Event&, HandlerContext& context) {
                                  Transaction tx = storage->begin();
                                  tx.execute("insert into " + table + " (id) values (?)",
                                             static_cast<std::int64_t>(context.claim().id));
                                  context.complete(tx);
                                  tx.commit();
                                })
      .register_handler_for_all("shaky", [&](const Event&) {
        // Slow handlers are what is tested here: a real pause, at times longer than the lease.
        if (settings.numbers.at("slow") > 0 &&
            dice(static_cast<unsigned>(settings.numbers.at("slow"))) == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(dice(500)));
        }
        say("h");
        return dice(8) == 0 ? EventHandledResult::transient_error("shaky") : EventHandledResult::success();
      });
  manager.start();
  say("ready");
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  manager.stop();
  return 0;
}

}  // namespace
}  // namespace postrider::test

int main(int argc, char** argv) {
  return postrider::test::child_main(argc, argv, postrider::test::run);
}
