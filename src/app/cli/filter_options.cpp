// SPDX-License-Identifier: Apache-2.0
#include "app/cli/filter_options.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <span>
#include <utility>

#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {

bool FilterOptions::chosen() const {
  return !types.empty() || !statuses.empty() || !tenant.empty() || !error.empty() || !older_than.empty() ||
         !stuck_for.empty() || attempts || delayed;
}

void add_event_filter(CLI::App& command, FilterOptions& options, const std::vector<std::string>& statuses,
                      const char* older_than) {
  command.add_option("--type", options.types, "Of this type")->type_name("TYPE")->allow_extra_args(false);
  add_statuses(command, options, statuses);
  command.add_option("--tenant", options.tenant, "Of this tenant")->type_name("ID");
  command.add_option("--older-than", options.older_than, older_than)->type_name("AGE");
  command.add_option("--error", options.error, "With this text in their error")->type_name("TEXT");
  command.add_option("--attempts", options.attempts, "Tried so many times, or more")->type_name("NUMBER");
}

void add_statuses(CLI::App& command, FilterOptions& options, const std::vector<std::string>& statuses) {
  command.add_option("--status", options.statuses, CLI::detail::join(statuses, ", "))
      ->type_name("STATUS")
      ->allow_extra_args(false)
      ->check(offers(statuses));
}

void set_if_given(std::optional<std::string>& to, const std::string& from) {
  if (!from.empty()) to = from;
}

void require_choice(bool chosen, bool all) {
  if (chosen || all) return;
  throw Error(ErrorCode::invalid_argument, "cannot tell which events are meant", "there is no filter",
              "name some (--id, --type, --older-than …), or say --all");
}

void NotFound::add(std::string id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(std::move(id));
}

void NotFound::say() const {
  constexpr std::size_t most_named = 20;
  if (ids.empty()) return;
  std::string names;
  for (const std::string& id : std::span(ids).first(std::min(ids.size(), most_named))) {
    names += (names.empty() ? "" : ", ") + cell(boost::json::value(id));
  }
  if (ids.size() > most_named) names += " and " + std::to_string(ids.size() - most_named) + " more";
  std::cerr << "postrider: " << counted(ids.size(), "id") << (ids.size() == 1 ? " was" : " were")
            << " not found among " << place << ": " << names << ". Hint: " << hint << '\n';
}

void NotFound::put_into(boost::json::object& answer) const {
  if (!ids.empty()) answer["notFound"] = boost::json::array(ids.begin(), ids.end());
}

void say_changed(const FilterOptions& options, std::int64_t events, std::string_view done,
                 std::string_view would, const NotFound& not_found) {
  if (options.format == Format::json) {
    boost::json::object answer{{"dryRun", options.dry_run}, {"events", events}};
    not_found.put_into(answer);
    std::cout << boost::json::serialize(answer) << '\n';
  } else {
    std::cout << "postrider: " << counted(static_cast<std::size_t>(events), "event") << ' '
              << (options.dry_run ? would : done) << '\n';
  }
  not_found.say();
}

}  // namespace postrider::cli
