// SPDX-License-Identifier: Apache-2.0
// What a call of log() costs the thread that logs.
#include <spdlog/async.h>
#include <spdlog/sinks/null_sink.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <filesystem>
#include <thread>

#include "logger.hpp"
#include "logger_common.hpp"
#include "postrider/async_logger.hpp"

namespace postrider::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t calls = 200'000;  // per thread and round
/// As real threads log: in bursts, with work of their own in between. Without pauses every logger is only as
/// quick as its background thread.
constexpr std::size_t burst = 500;
constexpr auto between = 1ms;

/// Nanoseconds of each call, of all threads, sorted.
std::vector<double> time_calls(int threads, std::uint64_t& allocations,
                               const std::function<void()>& log_once) {
  std::atomic<std::uint64_t> allocated{0};
  std::vector<std::vector<double>> times(static_cast<std::size_t>(threads));
  std::barrier start(threads);
  {
    std::vector<std::jthread> workers;
    for (auto& mine : times) {
      workers.emplace_back([&] {
        mine.reserve(calls);
        for (std::size_t i = 0; i < 1000; ++i) log_once();
        start.arrive_and_wait();
        const std::uint64_t before = my_allocations();
        for (std::size_t i = 0; i < calls; ++i) {
          if (i % burst == 0) std::this_thread::sleep_for(between);
          const auto begin = std::chrono::steady_clock::now();
          log_once();
          const auto end = std::chrono::steady_clock::now();
          mine.push_back(std::chrono::duration<double, std::nano>(end - begin).count());
        }
        allocated += my_allocations() - before;
      });
    }
  }
  allocations = allocated;
  std::vector<double> all;
  for (const auto& mine : times) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  return all;
}

/// What the two readings of the clock cost by themselves: it is taken off both sides.
double clock_cost() {
  std::vector<double> costs;
  for (int i = 0; i < 10'000; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto end = std::chrono::steady_clock::now();
    costs.push_back(std::chrono::duration<double, std::nano>(end - begin).count());
  }
  return median(costs);
}

}  // namespace

void logger_call(Report& report, const std::string& line, bool mapped, int threads) {
  const double cost = clock_cost();
  const std::string folder = scratch_folder("logger-call");
  std::vector<double> ours;
  std::uint64_t allocations = 0;
  std::uint64_t their_allocations = 0;
  const auto client = std::make_shared<NullClient>();
  const EventLogEntry entry = seed_entry();
  {
    LoggerOptions options;
    options.spillover_path = folder;
    options.ring = mapped ? RingMode::mapped : RingMode::memory;
    options.queue_capacity = 1'000'000;
    options.batch_size = 500;
    options.log = [](LogLevel, std::string_view) {};
    AsyncEventLogger logger(client, options);
    ours = time_calls(threads, allocations, [&] { logger.log(entry); });
    if (logger.stats().all_lost() > 0) say(line + ": " + std::to_string(logger.stats().all_lost()) + " lost");
  }
  std::filesystem::remove_all(folder);

  const std::string text = seed_line();
  auto pool = std::make_shared<spdlog::details::thread_pool>(1 << 16, 1);
  std::vector<double> theirs;
  {
    auto logger =
        std::make_shared<spdlog::async_logger>("bench", std::make_shared<spdlog::sinks::null_sink_mt>(), pool,
                                               spdlog::async_overflow_policy::overrun_oldest);
    theirs = time_calls(threads, their_allocations, [&] { logger->info(text); });
  }
  const auto at = [&](const std::vector<double>& sorted, double part) {
    return std::max(0.0,
                    sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))] - cost);
  };
  const auto print = [&](const char* name, double part, double limit) {
    const double baseline = at(theirs, part);
    const double value = at(ours, part);
    report.print({line + name,
                  value,
                  "ns",
                  "limit",
                  limit,
                  Target::at_most(1.0),
                  {{"spdlog_async", baseline},
                   {"times_faster", value > 0 ? baseline / value : 0.0},
                   {"clock_cost", cost},
                   {"allocations", static_cast<double>(allocations)}}});
  };
  print(".p50", 0.50, 60);
  print(".p99", 0.99, 300);
}

}  // namespace postrider::bench
