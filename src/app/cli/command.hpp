// SPDX-License-Identifier: Apache-2.0
// How commands come into the program: each `add_…` describes its options to CLI11 and says what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "app/cli/change.hpp"
#include "core/nearest.hpp"
#include "postrider/storage.hpp"

namespace postrider::cli {

/// The database whose audit is told of a change.
struct AuditedIn {
  /// Throws Error when it cannot be opened, or nobody has said which it is.
  std::function<std::unique_ptr<Storage>()> open{};
  /// Of a change that needs no database: whether one was named. Null: it does need one.
  std::function<bool()> named{};
  /// Of such a change: whether the database that was named is not there yet, as before the first start.
  std::function<bool()> absent{};
};

/// What the command line asks for.
struct Chosen {
  std::function<int()> run{};
  /// Commands that change something (events that are published or appended are none: they are in tables of
  /// their own). See run_chosen.
  std::map<const CLI::App*, AuditedIn> changes{};
  Change change{};  ///< told by such a command how far it is
};

/// Runs `run(options)` when `command` was given; the options live until then.
template <class Options, class Run>
void when_chosen(CLI::App& command, Chosen& chosen, std::shared_ptr<Options> options, Run run) {
  command.callback([&chosen, options = std::move(options), run = std::move(run)] {
    chosen.run = [options, run] { return run(*options); };
  });
}

/// The group of options that many commands have alike: documents tell them once.
inline constexpr const char* common_options = "Common options";

/// Several commands in one, of which one must be given.
inline CLI::App& add_group(CLI::App& app, const std::string& name, const std::string& help) {
  CLI::App& group = *app.add_subcommand(name, help);
  group.require_subcommand(1);
  return group;
}

/// Names the words that an option takes, for who completes command lines: CLI11 keeps the name for us.
inline std::string name_of_choices(const std::vector<std::string>& words) {
  std::string name = "one of";
  for (const std::string& word : words) name += " " + word;
  return name;
}

/// Takes anything: who reads the option knows better what is wrong with it.
inline CLI::Validator offers(const std::vector<std::string>& words) {
  return CLI::Validator([](const std::string&) { return std::string(); }, "", name_of_choices(words));
}

/// One of a few words, in upper or lower case. For an enumeration, which the option is read into.
template <class Choice>
CLI::Validator one_of(std::map<std::string, Choice> words) {
  std::string all;
  std::vector<std::string> names;
  for (const auto& [word, choice] : words) {
    all += (all.empty() ? "" : ", ") + word;
    names.push_back(word);
  }
  return CLI::Validator(
      [words = std::move(words), all](std::string& given) -> std::string {
        for (const auto& [word, choice] : words) {
          if (CLI::detail::to_lower(word) != CLI::detail::to_lower(given)) continue;
          given = std::to_string(static_cast<int>(choice));
          return {};
        }
        std::vector<std::string_view> known;
        for (const auto& [word, choice] : words) known.push_back(word);
        const std::string nearest(nearest_of(given, known));
        return "'" + given + "' is refused: there are " + all +
               (nearest.empty() ? "" : ". Hint: did you mean " + nearest + "?");
      },
      "", name_of_choices(names));
}

/// A whole number within bounds, told as our other errors tell it.
inline CLI::Validator between(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [least, most](const std::string& given) -> std::string {
        std::int64_t number = 0;
        const auto [end, failed] = std::from_chars(given.data(), given.data() + given.size(), number);
        const bool whole = failed == std::errc{} && end == given.data() + given.size();
        if (whole && number >= least && number <= most) return {};
        return "'" + given + "' is refused: it must be a number from " + std::to_string(least) + " to " +
               std::to_string(most);
      },
      "");
}

/// For positions, numbers of events and the like. What CLI11 has for this names a bound of 300 digits, and
/// takes what is larger than its number for the largest one.
inline CLI::Validator not_negative() {
  return between(0, std::numeric_limits<std::int64_t>::max());
}

/// --storage and --schema.
inline void add_storage_options(CLI::App& command, std::string& storage, std::string& schema,
                                bool required = true) {
  command.add_option("--storage", storage, "sqlite:events.db, postgresql://..., mariadb://...")
      ->type_name("URL")
      ->required(required);
  command.add_option("--schema", schema, "Schema (PostgreSQL) or table prefix of the tables")
      ->type_name("NAME")
      ->capture_default_str();
}

void add_eventlog_command(CLI::App& app, Chosen& chosen);
void add_serve_commands(CLI::App& app, Chosen& chosen);  ///< serve, config, token
void add_token_commands(CLI::App& app, Chosen& chosen);
void add_relay_commands(CLI::App& app, Chosen& chosen);  ///< topics, leaders
void add_migrate_command(CLI::App& app, Chosen& chosen);
void add_publish_command(CLI::App& app, Chosen& chosen);
void add_status_command(CLI::App& app, Chosen& chosen);
void add_tail_command(CLI::App& app, Chosen& chosen);
void add_spill_command(CLI::App& app, Chosen& chosen);
void add_doctor_command(CLI::App& app, Chosen& chosen);
void add_verify_command(CLI::App& app, Chosen& chosen);
void add_check_command(CLI::App& app, Chosen& chosen);
void add_bench_command(CLI::App& app, Chosen& chosen);
void add_explain_command(CLI::App& app, Chosen& chosen);
void add_dev_command(CLI::App& app, Chosen& chosen);
void add_demo_command(CLI::App& app, Chosen& chosen);  ///< in app/demo
/// help; made of all that was added to `app` before it runs.
void add_help_command(CLI::App& app, Chosen& chosen);
/// completion, man: made of all that was added to `app` before they run.
void add_self_description(CLI::App& app, Chosen& chosen, const std::string& version);
void add_outbox_commands(CLI::App& app, Chosen& chosen);  ///< outbox, dead
void add_queue_commands(CLI::App& app, Chosen& chosen);
void add_store_commands(CLI::App& app, Chosen& chosen);  ///< store, projections

}  // namespace postrider::cli
