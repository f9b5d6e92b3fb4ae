// SPDX-License-Identifier: Apache-2.0
// The program `postrider`. Its exit codes are in exit_codes.hpp.
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/audit.hpp"
#include "app/cli/exit_codes.hpp"
#include "app/cli/program.hpp"
#include "app/cli/terminal.hpp"
#include "core/nearest.hpp"
#include "core/what_of.hpp"

namespace {

std::string version_text() {
  std::string text = "postrider " POSTRIDER_VERSION " (sqlite";
#if defined(POSTRIDER_WITH_POSTGRES)
  text += ", postgres";
#endif
#if defined(POSTRIDER_WITH_MARIADB)
  text += ", mariadb";
#endif
  return text + ")";
}

int say_unknown(const CLI::App& app, const std::string& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(one->get_name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view nearest = postrider::nearest_of(command, views);
  std::cerr << "postrider: there is no command '" << command << "'. Hint: "
            << (nearest.empty() ? std::string("postrider --help lists them")
                                : "did you mean " + std::string(nearest) + "?")
            << '\n';
  return postrider::cli::exit_usage;
}

/// Says what is wrong, or the help that was asked for. To monitoring systems 2 is an alarm, so `check`
/// says 3.
int usage(const CLI::App& app, const CLI::ParseError& error) {
  using namespace postrider::cli;
  if (app.exit(error) == 0) return exit_ok;
  return app.got_subcommand("check") ? exit_unknown : exit_usage;
}

int run(int argc, char** argv) {
  CLI::App app{"Postrider: durable events, on the database you already have", "postrider"};
  postrider::cli::Chosen chosen;
  postrider::cli::add_all_commands(app, chosen, version_text());
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> rest = app.remaining();
    if (app.get_subcommands().empty() && !rest.empty()) return say_unknown(app, rest.front());
    return usage(app, error);
  } catch (const CLI::ParseError& error) {
    return usage(app, error);
  }
  return postrider::cli::run_chosen(app, chosen);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    if (std::cout.flush() || code != postrider::cli::exit_ok || postrider::cli::nobody_reads()) return code;
    std::cerr << "postrider: not all of the output could be written\n";
    return postrider::cli::exit_failed;
  } catch (const std::exception& error) {
    std::cerr << postrider::what_of(error) << '\n';
    return postrider::cli::exit_failed;
  }
}
