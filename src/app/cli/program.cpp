// SPDX-License-Identifier: Apache-2.0
#include "app/cli/program.hpp"

#include <iostream>

#include "app/cli/exit_codes.hpp"

namespace postrider::cli {

void add_all_commands(CLI::App& app, Chosen& chosen, const std::string& version) {
  app.require_subcommand(1);
  app.set_version_flag("--version", version);
  app.footer(exit_codes_text());
  add_demo_command(app, chosen);
  add_dev_command(app, chosen);
  add_serve_commands(app, chosen);
  add_eventlog_command(app, chosen);
  add_migrate_command(app, chosen);
  add_publish_command(app, chosen);
  add_status_command(app, chosen);
  add_tail_command(app, chosen);
  add_outbox_commands(app, chosen);
  add_queue_commands(app, chosen);
  add_relay_commands(app, chosen);
  add_store_commands(app, chosen);
  add_spill_command(app, chosen);
  add_doctor_command(app, chosen);
  add_verify_command(app, chosen);
  add_check_command(app, chosen);
  add_bench_command(app, chosen);
  add_explain_command(app, chosen);
  add_self_description(app, chosen, version);
  app.add_subcommand("version", "Say the version and the databases of this build")
      ->callback([&chosen, version] {
        chosen.run = [version] {
          std::cout << version << '\n';
          return exit_ok;
        };
      });
}

}  // namespace postrider::cli
