// SPDX-License-Identifier: Apache-2.0
// A start with much on disk: how long it takes, and what memory the replay needs.
#include <filesystem>
#include <iostream>
#include <thread>

#include "logger.hpp"
#include "logger/entry_json.hpp"
#include "logger/spill_store.hpp"
#include "logger_common.hpp"
#include "postrider/async_logger.hpp"

namespace postrider::bench {
namespace {

using namespace logger;

void fill(const std::string& folder, std::uint64_t bytes) {
  const auto files = open_spill_folder(folder);
  SpillStore store(*files,
                   {.max_events = 1'000'000'000, .max_bytes = std::uint64_t{1} << 40U, .durable = false},
                   [](LogLevel, std::string_view) {});
  std::string members;
  append_members(members, seed_entry().packed(), {TimePoint{}, "0123456789abcdef-1234567"}, {});
  while (store.bytes() < bytes) {
    for (int i = 0; i < 1000; ++i) (void)store.stage(members);
    if (store.write_staged() != 0) throw std::runtime_error("cannot write the backlog");
  }
}

LoggerOptions options_for(const std::string& folder) {
  LoggerOptions options;
  options.spillover_path = folder;
  options.max_spillover_bytes = std::uint64_t{1} << 40U;
  options.max_spillover_events = 1'000'000'000;
  options.replay_interval = std::chrono::hours{1};
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

std::string child_output(const std::string& folder, const char* what) {
  return output_of_child({"postrider-bench", "--logger-backlog", folder, what});
}

}  // namespace

int logger_backlog_child(const std::string& folder, bool replay) {
  const auto client = std::make_shared<NullClient>();
  const Stopwatch watch;
  AsyncEventLogger logger(client, options_for(folder));
  const double start = watch.seconds() * 1000;
  const double idle = peak_resident_mb();
  if (replay) {
    logger.replay_soon();
    // Waits for the end without costing the replay a processor.
    while (logger.stats().on_disk > 0) std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  std::cout << start << " " << peak_resident_mb() - idle << std::endl;
  return 0;
}

void logger_backlog(Report& report, const std::string& line) {
  const std::string folder = scratch_folder("logger-backlog");
  for (const auto& [name, bytes] :
       {std::pair{"1mb", std::uint64_t{1} << 20U}, {"4gb", std::uint64_t{4} << 30U}}) {
    const std::string here = folder + "/" + name;
    const Stopwatch filling;
    fill(here, bytes);
    say(line + ": " + name + " written in " + std::to_string(filling.seconds()) + " s");
    std::vector<double> starts;
    for (int i = 0; i < default_rounds; ++i) starts.push_back(std::stod(child_output(here, "start")));
    report.print({line + ".start." + name, median(starts), "ms", "limit", 50, Target::at_most(1.0), {}});
  }
  if (report.wanted(line + ".memory")) {
    const std::string output = child_output(folder + "/4gb", "replay");
    std::size_t rest = 0;
    (void)std::stod(output, &rest);
    report.print(
        {line + ".memory", std::stod(output.substr(rest)), "MB", "limit", 40, Target::at_most(1.0), {}});
  }
  std::filesystem::remove_all(folder);
}

}  // namespace postrider::bench
