// SPDX-License-Identifier: Apache-2.0
// postrider outbox …, postrider dead …
#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <map>

#include "app/api/counts_json.hpp"
#include "app/api/error_groups.hpp"
#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"
#include "app/cli/dead_filter.hpp"
#include "app/cli/event_input.hpp"
#include "app/cli/event_page.hpp"
#include "app/cli/outbox_changes.hpp"
#include "app/cli/outbox_list.hpp"
#include "core/age.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

/// Rows come with their payloads: few at a time.
constexpr std::size_t dead_page = 50;
constexpr std::size_t most_groups = 100;

struct OneEvent : AdminOptions {
  std::string id{};
  std::string data{};
  std::vector<std::string> headers{};
};

struct OutboxPurgeOptions : AdminOptions {
  std::string older_than{};
  EventStatus status = EventStatus::done;
  bool dry_run = false;
};

OutboxAdmin admin_of(Storage& storage) {
  return OutboxAdmin(storage);
}

OutboxRecord found(Storage& storage, const std::string& id) {
  std::optional<OutboxRecord> record = admin_of(storage).find(EventId(id));
  if (!record) {
    throw Error(ErrorCode::invalid_argument, "cannot find " + id, "the outbox has no event with this id",
                "finished events are removed after some time, see outbox.purge-done-after");
  }
  return std::move(*record);
}

int print_counts(Storage& storage, const AdminOptions& options) {
  print_object(std::cout, options.format, api::counts_json(admin_of(storage).counts()), colour_wanted());
  return 0;
}

int show(Storage& storage, const OneEvent& options) {
  print_event(std::cout, options.format, api::whole_json(found(storage, options.id)), colour_wanted());
  return 0;
}

int show_dead(Storage& storage, const OneEvent& options) {
  const OutboxRecord record = found(storage, options.id);
  if (record.status != EventStatus::dead) {
    throw Error(ErrorCode::invalid_argument, options.id + " is no dead letter",
                "it is " + std::string(to_string(record.status)),
                "any event is shown by: postrider outbox show " + options.id);
  }
  print_event(std::cout, options.format, api::whole_json(record), colour_wanted());
  return 0;
}

/// Calls `use` with the dead letters that match, oldest death first, up to `limit`.
template <class Use>
void each_dead(Storage& storage, const DeadLetterFilter& filter, std::size_t limit, const Use& use) {
  OutboxAdmin admin = admin_of(storage);
  std::optional<OutboxRecord> last;
  while (limit > 0) {
    const std::vector<OutboxRecord> page =
        admin.dead_letters(filter, std::min(limit, dead_page), last ? &*last : nullptr);
    if (page.empty()) return;
    for (const OutboxRecord& record : page) use(record);
    limit -= page.size();
    last = page.back();
  }
}

int list_dead(Storage& storage, const DeadOptions& options) {
  Table table({{"id", "ID"},
               {.name = "type", .title = "TYPE", .cut = true},
               {.name = "attempts", .title = "FAILURES", .right = true, .spare = 3},
               {.name = "doneAt", .title = "DEAD SINCE", .spare = 1},
               {.name = "aggregateType", .title = "AGGREGATE", .cut = true, .spare = 4},
               {.name = "aggregateId", .title = "AGGREGATE ID", .cut = true, .spare = 2},
               {.name = "lastError", .title = "ERROR", .cut = true}});
  each_dead(storage, filter_of(options), options.limit,
            [&](const OutboxRecord& record) { table.add(api::brief_json(record)); });
  table.print(std::cout, options.format, "There are no dead letters.", colour_wanted());
  return 0;
}

int group_dead(Storage& storage, const DeadOptions& options) {
  std::vector<DeadError> errors;
  each_dead(storage, filter_of(options), options.limit, [&](const OutboxRecord& record) {
    errors.push_back({record.id, record.type, record.done_at.value_or(record.created_at), record.last_error});
  });
  std::reverse(errors.begin(), errors.end());  // latest first
  const api::ErrorGroups groups = api::group_errors(errors, most_groups);
  Table table({{"events", "EVENTS", true},
               {.name = "type", .title = "TYPE", .cut = true},
               {.name = "firstDiedAt", .title = "FIRST", .spare = 3},
               {.name = "lastDiedAt", .title = "LAST", .spare = 2},
               {.name = "exampleId", .title = "EXAMPLE", .spare = 1},
               {.name = "error", .title = "ERROR", .cut = true}});
  for (const api::ErrorGroup& group : groups.groups) table.add(api::group_json(group));
  table.print(std::cout, options.format, "There are no dead letters.", colour_wanted());
  if (errors.size() == options.limit) {
    std::cerr << "postrider: these are the oldest " << errors.size()
              << " dead letters; there may be more. Hint: --limit looks at more of them\n";
  }
  if (groups.others > 0) {
    std::cerr << "postrider: " << groups.others << " more are in groups beyond the largest " << most_groups
              << '\n';
  }
  return 0;
}

int edit_dead(Storage& storage, const OneEvent& options, Change& change) {
  std::optional<Headers> headers;
  if (!options.headers.empty()) {
    headers.emplace();
    for (const std::string& text : options.headers) headers->insert(name_and_value("--header", text));
  }
  const EventId id(options.id);
  std::string data = read_json("--data", options.data);  // perhaps typed in just now
  change.begin();
  if (!admin_of(storage).edit_dead_letter(id, PayloadKind::json, std::move(data), headers)) {
    throw Error(ErrorCode::invalid_argument, "cannot change " + options.id,
                "there is no dead letter with this id");
  }
  print_event(std::cout, options.format, api::whole_json(found(storage, options.id)), colour_wanted());
  if (options.format == Format::table) {
    std::cerr << "postrider: it stays dead until: postrider dead replay --id " << options.id << '\n';
  }
  return 0;
}

std::int64_t purge_all(OutboxAdmin admin, PurgeOptions which, Change& change) {
  which.at_most = which.batch_size;
  change.begin();
  std::int64_t all = 0;
  for (;;) {
    const std::int64_t now = admin.purge(which);
    all += now;
    if (now < static_cast<std::int64_t>(which.batch_size) || !change.go_on(all)) break;
  }
  change.done(all);
  return all;
}

int purge(Storage& storage, const OutboxPurgeOptions& options, Change& change) {
  const PurgeOptions which{.status = options.status,
                           .older_than = parse_age("--older-than", options.older_than),
                           .dry_run = options.dry_run};
  OutboxAdmin admin = admin_of(storage);
  const std::int64_t events = options.dry_run ? admin.purge(which) : purge_all(admin, which, change);
  if (options.format == Format::json) {
    std::cout << json::serialize(json::object{{"dryRun", options.dry_run}, {"events", events}}) << '\n';
  } else {
    std::cout << "postrider: " << counted(static_cast<std::size_t>(events), "event")
              << (options.dry_run ? " would be removed\n" : " removed\n");
  }
  return 0;
}

void add_purge(CLI::App& group, Chosen& chosen, EventStatus status, const char* help) {
  auto options = std::make_shared<OutboxPurgeOptions>();
  options->status = status;
  CLI::App& command = *group.add_subcommand("purge", help);
  command.add_option("--older-than", options->older_than, "Finished so long ago: 7d, 12h")
      ->type_name("AGE")
      ->required();
  command.add_flag("--dry-run", options->dry_run, "Only count them");
  when_chosen_to_change(command, chosen, options, purge);
}

template <class Verb>
void add_one(CLI::App& group, Chosen& chosen, const char* name, const char* help, Verb verb) {
  auto options = std::make_shared<OneEvent>();
  CLI::App& command = *group.add_subcommand(name, help);
  command.add_option("id", options->id, "The event's id")->type_name("ID")->required();
  when_chosen_on_storage(command, chosen, options, verb);
}

void add_edit(CLI::App& dead, Chosen& chosen) {
  auto options = std::make_shared<OneEvent>();
  CLI::App& command =
      *dead.add_subcommand("edit", "Give one a corrected payload; it stays dead until replayed");
  command.add_option("id", options->id, "The event's id")->type_name("ID")->required();
  command.add_option("--data", options->data, "The payload: JSON, @file, or - for standard input")
      ->type_name("JSON")
      ->required();
  command.add_option("--header", options->headers, "All headers it shall have; without it they stay")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  when_chosen_to_change(command, chosen, options, edit_dead);
}

void add_listing(CLI::App& dead, Chosen& chosen, const char* name, const char* help, std::size_t limit,
                 int (*verb)(Storage&, const DeadOptions&)) {
  auto options = std::make_shared<DeadOptions>();
  options->limit = limit;
  CLI::App& command = *dead.add_subcommand(name, help);
  add_dead_filter(command, *options);
  command.add_option("--limit", options->limit, "At most so many, those that died first")
      ->check(between(1, 100'000))
      ->capture_default_str();
  when_chosen_on_storage(command, chosen, options, verb);
}

}  // namespace

void add_outbox_commands(CLI::App& app, Chosen& chosen) {
  CLI::App& outbox = add_group(app, "outbox", "Events on their way to their listeners and sinks");
  when_chosen_on_storage(*outbox.add_subcommand("counts", "How many there are, by status"), chosen,
                         std::make_shared<AdminOptions>(), print_counts);
  add_outbox_list(outbox, chosen);
  add_one(outbox, chosen, "show", "One event, with payload, headers and the attempts that failed", show);
  add_outbox_changes(outbox, chosen);
  add_purge(outbox, chosen, EventStatus::done, "Remove delivered events, in small transactions");

  CLI::App& dead = add_group(app, "dead", "Events that could not be delivered");
  add_listing(dead, chosen, "list", "Which there are", 100, list_dead);
  add_listing(dead, chosen, "groups", "What they died of", 10'000, group_dead);
  add_one(dead, chosen, "show", "One of them, with payload, headers and the attempts that failed", show_dead);
  {
    auto options = std::make_shared<DeadOptions>();
    CLI::App& replay = *dead.add_subcommand("replay", "Deliver them again, with no attempts counted");
    add_dead_filter(replay, *options);
    replay.add_flag("--all", options->all, "All of them");
    replay.add_flag("--dry-run", options->dry_run, "Only count them");
    replay.add_option("--rate", options->rate, "So many per second; without it all at once")
        ->type_name("EVENTS")
        ->check(between(1, 100'000));
    replay.add_flag("--yes", options->yes, "Do not ask, however many there are");
    add_admin_options(replay, *options);
    say_it_changes(replay, chosen, options);
    when_chosen(replay, chosen, options,
                [&change = chosen.change](const DeadOptions& given) { return replay_dead(given, change); });
  }
  add_edit(dead, chosen);
  add_purge(dead, chosen, EventStatus::dead, "Remove dead letters, in small transactions");
}

}  // namespace postrider::cli
