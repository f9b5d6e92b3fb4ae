// SPDX-License-Identifier: Apache-2.0
// postrider demo: all chapters on embedded SQLite, with the dashboard.
#include <array>
#include <boost/json.hpp>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include "app/cli/command.hpp"
#include "app/cli/exit_codes.hpp"
#include "app/cli/output.hpp"
#include "app/cli/scratch_folder.hpp"
#include "app/cli/terminal.hpp"
#include "app/demo/backstage.hpp"
#include "app/demo/encore.hpp"
#include "app/demo/stage.hpp"
#include "postrider/error.hpp"

namespace postrider::demo {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

struct DemoOptions {
  std::string listen = "127.0.0.1:0";
  int seconds = 10;
  bool once = false;
  bool keep = false;
  cli::Format format = cli::Format::table;
  // For the actors, who are this program too.
  std::string role{};
  std::string folder{};
};

struct Played {
  const char* chapter;
  Result result;
};

/// Up to the first that goes wrong, or until nobody looks any more.
std::vector<Played> play(Stage& stage, Backstage& backstage, std::chrono::seconds length) {
  std::vector<Played> all;
  const auto next = [&](const char* chapter, const auto& run) {
    if (stage.left() || (!all.empty() && !all.back().result.good)) return;
    all.push_back({chapter, run()});
  };
  next("outbox", [&] { return play_outbox(stage, backstage, length); });
  next("queue", [&] { return play_queue(stage); });
  next("event store and relay", [&] { return play_wallets(stage, backstage); });
  next("logger", [&] { return play_resort(stage); });
  return all;
}

json::object summary_of(const std::vector<Played>& all, bool good, const std::string& dashboard) {
  json::array chapters;
  for (const Played& one : all) {
    chapters.push_back({{"chapter", one.chapter},
                        {"ok", one.result.good},
                        {"result", one.result.story},
                        {"figures", one.result.figures}});
  }
  return {{"ok", good}, {"chapters", std::move(chapters)}, {"dashboard", dashboard}};
}

void print_summary(const Stage& stage, const std::vector<Played>& all) {
  std::fprintf(stage.out(), "\nSummary\n");
  for (const Played& one : all) {
    std::fprintf(stage.out(), "  %-22s %-6s  %s\n", one.chapter, one.result.good ? "good" : "WRONG",
                 one.result.story.c_str());
  }
}

int run_role(const DemoOptions& options) {
  constexpr std::array<std::pair<std::string_view, int (*)(const Place&)>, 4> roles{
      {{"shop", run_shop}, {"worker", run_worker}, {"relay", run_relay_node}, {"resort", run_resort}}};
  for (const auto& [name, run] : roles) {
    if (options.role == name) return run({options.folder});
  }
  throw Error(ErrorCode::invalid_argument, "cannot play '" + options.role + "'", "there is no such role");
}

int run_demo(const DemoOptions& options) {
  if (!options.role.empty()) return run_role(options);
  const cli::Interrupts interrupts;
  const bool as_json = options.format == cli::Format::json;
  const bool goes_on = cli::output_is_terminal() && !options.once && !as_json;
  cli::ScratchFolder folder("postrider-demo");
  if (options.keep) folder.keep();
  Stage stage({folder.path()}, fs::read_symlink("/proc/self/exe").string(), as_json ? stderr : stdout,
              cli::output_is_terminal() && !as_json, interrupts);
  Backstage backstage(stage, options.listen);
  if (!backstage.start(stage)) {
    if (!stage.left()) std::cerr << "postrider: the demo's daemon did not start in time\n";
    return cli::exit_failed;
  }
  std::fprintf(stage.out(), "postrider: a demo on embedded SQLite, in %s\nDashboard: %s\n",
               folder.path().c_str(), backstage.dashboard().c_str());
  const std::vector<Played> all = play(stage, backstage, std::chrono::seconds(options.seconds));
  if (stage.left()) {
    std::fprintf(stage.out(), "\npostrider: the demo was interrupted\n");
    return cli::exit_failed;
  }
  const bool good = all.back().result.good;
  print_summary(stage, all);
  if (as_json) std::cout << json::serialize(summary_of(all, good, backstage.dashboard())) << std::endl;
  if (!good) {
    folder.keep();
    std::fprintf(stage.out(), "\nNOT AS IT SHOULD BE: everything is kept in %s\n", folder.path().c_str());
    return cli::exit_failed;
  }
  std::fprintf(stage.out(), "\nNothing was lost, whoever was killed.\nDashboard: %s%s\n",
               backstage.dashboard().c_str(),
               goes_on ? "  (Ctrl-C ends the demo)" : "  (gone with the demo; on a terminal it stays)");
  if (goes_on) play_encore(stage, backstage);
  std::fflush(stage.out());
  backstage.stop();
  if (options.keep) std::fprintf(stage.out(), "Everything is kept in %s\n", folder.path().c_str());
  return cli::exit_ok;
}

}  // namespace
}  // namespace postrider::demo

namespace postrider::cli {

void add_demo_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<demo::DemoOptions>();
  CLI::App& command = *app.add_subcommand(
      "demo", "Show everything on embedded SQLite, with the dashboard; on a terminal until Ctrl-C");
  command.add_option("--listen", options->listen, "Of the dashboard; by default a free port of loopback")
      ->type_name("ADDRESS:PORT");
  command
      .add_option("--seconds", options->seconds, "How long the shop of the first chapter is open, 5 to 600")
      ->check(between(5, 600))
      ->capture_default_str();
  command.add_flag("--once", options->once, "End after the last chapter, also on a terminal");
  command.add_flag("--keep", options->keep, "Keep the folder with database, books and logs");
  command
      .add_option("-o,--output", options->format, "table, or json for the summary alone; ends like --once")
      ->type_name("FORMAT")
      ->transform(one_of<Format>({{"table", Format::table}, {"json", Format::json}}));
  command.add_option("--role", options->role, "For the demo's own processes")->group("");
  command.add_option("--folder", options->folder, "For the demo's own processes")->group("");
  when_chosen(command, chosen, options, demo::run_demo);
}

}  // namespace postrider::cli
