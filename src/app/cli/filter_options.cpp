// SPDX-License-Identifier: Apache-2.0
#include "app/cli/filter_options.hpp"

#include <boost/json.hpp>
#include <iostream>

#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {

bool FilterOptions::chosen() const {
  return !types.empty() || !statuses.empty() || !tenant.empty() || !error.empty() || !older_than.empty() ||
         !stuck_for.empty() || attempts || delayed;
}

void add_event_filter(CLI::App& command, FilterOptions& options, const char* statuses,
                      const char* older_than) {
  command.add_option("--type", options.types, "Of this type")->type_name("TYPE")->allow_extra_args(false);
  command.add_option("--status", options.statuses, statuses)->type_name("STATUS")->allow_extra_args(false);
  command.add_option("--tenant", options.tenant, "Of this tenant")->type_name("ID");
  command.add_option("--older-than", options.older_than, older_than)->type_name("AGE");
  command.add_option("--error", options.error, "With this text in their error")->type_name("TEXT");
  command.add_option("--attempts", options.attempts, "Tried so many times, or more")->type_name("NUMBER");
}

void set_if_given(std::optional<std::string>& to, const std::string& from) {
  if (!from.empty()) to = from;
}

void require_choice(bool chosen, bool all) {
  if (chosen || all) return;
  throw Error(ErrorCode::invalid_argument, "cannot tell which events are meant", "there is no filter",
              "name some (--id, --type, --older-than …), or say --all");
}

void say_changed(const FilterOptions& options, std::int64_t events, std::string_view done,
                 std::string_view would) {
  if (options.format == Format::json) {
    std::cout << boost::json::serialize(boost::json::object{{"dryRun", options.dry_run}, {"events", events}})
              << '\n';
    return;
  }
  std::cout << "postrider: " << counted(static_cast<std::size_t>(events), "event") << ' '
            << (options.dry_run ? would : done) << '\n';
}

}  // namespace postrider::cli
