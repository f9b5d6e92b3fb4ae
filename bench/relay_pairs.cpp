// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <thread>

#include "relay.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

namespace {

constexpr int topics = 100;
constexpr int publishers = 100;
constexpr auto observed = std::chrono::seconds{20};
using SteadyTime = std::chrono::steady_clock::time_point;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::size_t thread_count() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

/// Says when it was entered last.
class Stamp final : public Publisher {
 public:
  PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext&) override {
    entered = std::chrono::steady_clock::now();
    position = events.back().position();
    position.notify_all();
    return PublishResult::all();
  }
  std::string name() const override { return "stamp"; }
  std::atomic<SteadyTime> entered{};
  std::atomic<Position> position{};
};

}  // namespace

int relay_pairs_child(const std::string& url, const std::string& schema) {
  const auto storage = open(url, {.schema = schema});
  Relay relay(*storage);
  std::vector<std::shared_ptr<Publisher>> sinks;
  for (int i = 0; i < publishers; ++i) {
    sinks.push_back(std::make_shared<StatisticsPublisher>("publisher" + std::to_string(i)));
  }
  for (int topic = 0; topic < topics; ++topic) {
    for (const auto& sink : sinks) {
      relay.add({.name = "topic" + std::to_string(topic), .required_tags = {"key" + std::to_string(topic)}},
                sink);
    }
  }
  relay.start();
  const Stopwatch watch;
  while (relay.led() < std::size_t{topics} * publishers) {
    if (watch.seconds() > 60) throw std::runtime_error("not all pairs are led after a minute");
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  const double taken = watch.seconds();
  std::this_thread::sleep_for(std::chrono::seconds{5});
  const double before = cpu_seconds();
  std::this_thread::sleep_for(observed);
  const double percent = (cpu_seconds() - before) / std::chrono::duration<double>(observed).count() * 100;
  std::cout << thread_count() << " " << percent << " " << peak_resident_mb() << " " << taken << std::endl;
  relay.stop();
  return 0;
}

void relay_pairs(Report& report, const std::string& line) {
  Sandbox sandbox(BackendKind::postgres, "bench_relay_pairs");
  std::istringstream output(
      output_of_child({"postrider-bench", "--relay-pairs", sandbox.url(), sandbox.schema()}));
  double threads = 0;
  double cpu = 0;
  double memory = 0;
  double taken = 0;
  output >> threads >> cpu >> memory >> taken;
  if (!output) throw std::runtime_error("the process has not said its numbers");
  const auto print = [&](const char* suffix, double value, const char* unit, double limit) {
    report.print({line + suffix,
                  value,
                  unit,
                  "limit",
                  limit,
                  Target::at_most(1.0),
                  {{"pairs", double{topics * publishers}}, {"seconds_until_led", taken}}});
  };
  print(".threads", threads, "threads", 8);
  print(".cpu", cpu, "% of a core", 5);
  print(".memory", memory, "MB", 200);
}

void relay_latency(Report& report, const std::string& line) {
  constexpr std::size_t samples = 500;
  constexpr double limit = 5;  // ms
  Sandbox sandbox(BackendKind::postgres, "bench_relay_latency");
  std::vector<double> p50;
  std::vector<double> p99;
  EventStore store(sandbox.storage());
  for (int round = 1; round <= default_rounds; ++round) {
    Relay relay(sandbox.storage());
    const auto stamp = std::make_shared<Stamp>();
    relay.add({.name = "all"}, stamp);
    relay.start();
    std::vector<double> latencies;
    for (std::size_t i = 0; i < samples; ++i) {
      const auto result =
          store.append({AppendEvent::builder("BenchEvent").tag("a", "1").tag("b", "2").data("{}")});
      const SteadyTime returned = std::chrono::steady_clock::now();
      for (Position seen = stamp->position; seen < result.last; seen = stamp->position)
        stamp->position.wait(seen);
      // It may well be entered before the append has returned.
      const std::chrono::duration<double, std::milli> latency = stamp->entered.load() - returned;
      if (i > 0) latencies.push_back(std::max(0.0, latency.count()));
      std::this_thread::sleep_for(std::chrono::milliseconds{3});
    }
    relay.stop();
    p50.push_back(percentile(latencies, 0.50));
    p99.push_back(percentile(latencies, 0.99));
    say(line + " round " + std::to_string(round) + ": p50 " + std::to_string(p50.back()) + " p99 " +
        std::to_string(p99.back()) + " ms");
  }
  report.print({line,
                median(p99),
                "ms",
                "limit",
                limit,
                Target::at_most(1.0),
                {{"p50", median(p50)}, {"samples", double{default_rounds * samples}}}});
}

}  // namespace postrider::bench
