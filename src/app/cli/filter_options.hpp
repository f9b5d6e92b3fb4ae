// SPDX-License-Identifier: Apache-2.0
// What commands have in common that list or change events by a filter.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/admin_options.hpp"
#include "app/cli/exit_codes.hpp"

namespace postrider::cli {

struct FilterOptions : AdminOptions {
  std::vector<std::string> types{};
  std::vector<std::string> statuses{};
  std::string tenant{};
  std::string older_than{};
  std::string error{};
  std::optional<std::int32_t> attempts{};
  std::string stuck_for{};
  bool delayed = false;
  bool all = false;
  bool dry_run = false;
  std::string reason{};

  /// Whether anything says which are meant.
  [[nodiscard]] bool chosen() const;
};

/// --type to --attempts.
void add_event_filter(CLI::App& command, FilterOptions& options, const std::vector<std::string>& statuses,
                      const char* older_than);

/// --status alone.
void add_statuses(CLI::App& command, FilterOptions& options, const std::vector<std::string>& statuses);

/// A filter's text that was given.
void set_if_given(std::optional<std::string>& to, const std::string& from);

/// Of "Order" or "Order/42".
template <class Filter>
void set_aggregate(Filter& filter, const std::string& aggregate) {
  const std::size_t slash = aggregate.find('/');
  set_if_given(filter.aggregate_type, aggregate.substr(0, slash));
  if (slash != std::string::npos) filter.aggregate_id = aggregate.substr(slash + 1);
}

/// Throws Error(invalid_argument) when nothing says which are meant, and nothing that all are.
void require_choice(bool chosen, bool all);

/// Ids that were given by name, and are not where the command looks.
struct NotFound {
  std::string_view place{};  ///< "the events of the queue"
  std::string_view hint{};   ///< where they may be instead
  std::vector<std::string> ids{};

  /// Takes it in once, however often it was given.
  void add(std::string id);
  /// Names them on standard error.
  void say() const;
  /// The others may have been changed; whoever named these has not got what he wanted.
  [[nodiscard]] int exit_code() const noexcept { return ids.empty() ? exit_ok : exit_failed; }
  /// As "notFound", when there are any.
  void put_into(boost::json::object& answer) const;
};

/// "postrider: 3 events cancelled", or as JSON.
void say_changed(const FilterOptions& options, std::int64_t events, std::string_view done,
                 std::string_view would, const NotFound& not_found = {});

struct FilterCommand {
  const char* name;
  const char* help;
  std::string_view done;         ///< "cancelled"
  std::string_view would;        ///< "would be cancelled"
  const char* reason = nullptr;  ///< what --reason is good for, where there is one
  const char* all = "All of them";
};

/// A command that changes what its filter finds: `describe(command, options)` adds the filter,
/// `look(storage, options)` returns which of the named ids are not there, `run(storage, options, change)` how
/// many events were changed.
template <class Options, class Describe, class Look, class Run>
void add_filter_command(CLI::App& group, Chosen& chosen, const FilterCommand& words, Describe describe,
                        Look look, Run run) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *group.add_subcommand(words.name, words.help);
  describe(command, *options);
  command.add_flag("--all", options->all, words.all);
  command.add_flag("--dry-run", options->dry_run, "Only count them");
  if (words.reason != nullptr) {
    command.add_option("--reason", options->reason, words.reason)->type_name("TEXT");
  }
  when_chosen_to_change(command, chosen, options,
                        [look, run, done = words.done, would = words.would](
                            Storage& storage, const Options& given, Change& change) {
                          require_choice(given.chosen(), given.all);
                          const NotFound not_found = look(storage, given);
                          change.begin();
                          const std::int64_t events = run(storage, given, change);
                          change.done(events);
                          say_changed(given, events, done, would, not_found);
                          return not_found.exit_code();
                        });
}

}  // namespace postrider::cli
