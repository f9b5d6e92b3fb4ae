// SPDX-License-Identifier: Apache-2.0
// The program `postrider`. Its exit codes are in exit_codes.hpp.
#include <csignal>
#include <exception>
#include <iostream>
#include <string>

#include "app/cli/audit.hpp"
#include "app/cli/exit_codes.hpp"
#include "app/cli/program.hpp"
#include "app/cli/terminal.hpp"
#include "app/cli/usage_error.hpp"
#include "app/sinks/sink_kinds.hpp"
#include "core/what_of.hpp"

namespace {

postrider::cli::Build this_build() {
  postrider::cli::Build build{.version = POSTRIDER_VERSION, .databases = {"sqlite"}};
#if defined(POSTRIDER_WITH_POSTGRES)
  build.databases.emplace_back("postgres");
#endif
#if defined(POSTRIDER_WITH_MARIADB)
  build.databases.emplace_back("mariadb");
#endif
  for (const std::string_view kind : postrider::sinks::kinds()) build.sinks.emplace_back(kind);
  return build;
}

/// Says what is wrong, or the help that was asked for. To monitoring systems 2 is an alarm, so `check`
/// says 3.
int usage(const CLI::App& app, const CLI::ParseError& error) {
  using namespace postrider::cli;
  if (error.get_exit_code() == 0) return app.exit(error);
  std::cerr << usage_text(app, error) << '\n';
  return app.got_subcommand("check") ? exit_unknown : exit_usage;
}

int run(int argc, char** argv) {
  CLI::App app{"Postrider: durable events, on the database you already have", "postrider"};
  postrider::cli::Chosen chosen;
  postrider::cli::add_all_commands(app, chosen, this_build());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return usage(app, error);
  }
  return postrider::cli::run_chosen(app, chosen);
}

}  // namespace

int main(int argc, char** argv) {
  // A file that may not grow any further (ulimit -f) makes a write fail, like a full disk; it ends nobody.
  std::signal(SIGXFSZ, SIG_IGN);  // NOLINT(cert-err33-c): there is nothing it could fail of
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
