// SPDX-License-Identifier: Apache-2.0
// postrider store …, postrider projections …
#include <boost/json.hpp>
#include <iostream>
#include <limits>

#include "app/api/record_json.hpp"
#include "app/cli/admin_options.hpp"
#include "app/cli/event_input.hpp"
#include "app/cli/event_line.hpp"
#include "app/cli/follow.hpp"
#include "core/json_text.hpp"
#include "postrider/error.hpp"
#include "postrider/event_store.hpp"
#include "postrider/projection.hpp"
#include "storage/wake_channel.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

struct StoreOptions : AdminOptions {
  std::string type{};
  std::vector<std::string> types{};
  std::vector<std::string> tags{};
  std::string data = "{}";
  std::vector<std::string> metadata{};
  std::string id{};
  std::string correlation_id{};
  std::string causation_id{};
  std::vector<std::string> fail_types{};
  std::vector<std::string> fail_tags{};
  std::optional<std::int64_t> after{};
  std::optional<std::size_t> limit{};
  bool backwards = false;
  bool follow = false;
};

struct ProjectionCommandOptions : AdminOptions {
  std::string name{};
  int version = 0;
};

Query query_of(const std::vector<std::string>& types, const std::vector<std::string>& tags) {
  if (types.empty() && tags.empty()) return Query::all();
  QueryItem item{.types = types};
  for (const std::string& tag : tags) item.tags.push_back(Tag::decode(tag));
  return Query::of({std::move(item)});
}

int print_head(Storage& storage, const AdminOptions& options) {
  EventStore store(storage);
  print_object(std::cout, options.format, {{"head", static_cast<std::int64_t>(store.head())}},
               colour_wanted());
  return 0;
}

/// An array for programs, written as it is read.
int read_once(const StoreOptions& options) {
  const Query query = query_of(options.types, options.tags);
  const std::unique_ptr<Storage> storage = open_for(options);
  EventStore store(*storage);
  ReadOptions read{.limit = options.limit.value_or(100), .backwards = options.backwards};
  if (options.after) read.after = Position{*options.after};
  EventStream events = store.read(query, read);
  const bool json = options.format == Format::json;
  bool any = false;
  if (json) std::cout << '[';
  while (const std::optional<StoredEvent> event = events.next()) {
    if (json) {
      std::cout << (any ? "," : "") << json::serialize(api::stored_json(*event));
    } else {
      print_line(std::cout, options.format, *event);
    }
    any = true;
  }
  if (json) std::cout << "]\n";
  if (!json && !any) std::cout << "There are none.\n";
  return 0;
}

int read_on(const StoreOptions& options) {
  const Query query = query_of(options.types, options.tags);
  const Interrupts interrupts;  // before there are other threads
  const std::unique_ptr<Storage> storage = open_for(options);
  EventStore store(*storage);
  std::unique_ptr<WakeChannel::Subscription> wakes;
  if (WakeChannel* const channel = storage->wake_channel()) {
    wakes = channel->listen(wake_topic::stream, [&interrupts] { interrupts.nudge(); });
  }
  Position at{options.after.value_or(0)};
  std::size_t left = options.limit.value_or(std::numeric_limits<std::size_t>::max());
  return follow(interrupts, [&] {
    EventStream events = store.read(query, {.after = at, .limit = left});
    Found found = Found::nothing;
    while (const std::optional<StoredEvent> event = events.next()) {
      print_line(std::cout, options.format, *event);
      at = event->position();
      found = --left == 0 ? Found::enough : Found::some;
    }
    at = std::max(at, events.head());  // nothing else up to there matches
    return found;
  });
}

int append(Storage& storage, const StoreOptions& options) {
  AppendEventBuilder builder = AppendEvent::builder(options.type);
  for (const std::string& tag : options.tags) builder.tag(Tag::decode(tag));
  builder.data(read_json("--data", options.data));
  for (const std::string& text : options.metadata) {
    auto [name, value] = name_and_value("--metadata", text);
    builder.metadata(std::move(name), std::move(value));
  }
  if (!options.id.empty()) builder.id(EventId(options.id));
  if (!options.correlation_id.empty()) builder.correlation_id(options.correlation_id);
  if (!options.causation_id.empty()) builder.causation_id(options.causation_id);
  const AppendEvent event = builder.build();
  EventStore store(storage);
  const bool conditional = !options.fail_types.empty() || !options.fail_tags.empty() || options.after;
  AppendResult result;
  if (conditional) {
    AppendCondition condition{.query = query_of(options.fail_types, options.fail_tags)};
    if (options.after) condition.after = Position{*options.after};
    result = store.append_if({&event, 1}, condition);
  } else {
    result = store.append({&event, 1});
  }
  if (const Appended* const appended = std::get_if<Appended>(&result)) {
    print_object(std::cout, options.format,
                 {{"appendConditionFailed", false},
                  {"firstPosition", static_cast<std::int64_t>(appended->first)},
                  {"lastPosition", static_cast<std::int64_t>(appended->last)},
                  {"id", event.event().id().view()}},
                 colour_wanted());
    return 0;
  }
  const Conflict& conflict = std::get<Conflict>(result);
  print_object(std::cout, options.format,
               {{"appendConditionFailed", true},
                {"conflict", json::object{{"position", static_cast<std::int64_t>(conflict.position)},
                                          {"type", api::shown(conflict.type)}}}},
               colour_wanted());
  return 1;
}

int list_projections(Storage& storage, const ProjectionCommandOptions& options) {
  Table table({{"name", "NAME"},
               {"version", "VERSION", true},
               {"status", "STATUS"},
               {.name = "live", .title = "LIVE", .spare = 3},
               {.name = "position", .title = "POSITION", .right = true, .spare = 1},
               {"lagEvents", "LAG", true},
               {.name = "lagSeconds", .title = "SECONDS", .right = true, .spare = 4},
               {.name = "owner", .title = "NODE", .cut = true, .spare = 2},
               {.name = "skipped", .title = "SKIPPED", .right = true, .spare = 5},
               {.name = "lastError", .title = "LAST ERROR", .cut = true}});
  for (const ProjectionStatus& one : ProjectionAdmin(storage).list()) {
    if (options.name.empty() || one.name == options.name) table.add(api::projection_json(one));
  }
  table.print(std::cout, options.format,
              "There are no projections yet: a program makes them when it runs them.", colour_wanted());
  return 0;
}

void add_read(CLI::App& store, Chosen& chosen) {
  auto options = std::make_shared<StoreOptions>();
  CLI::App& read = *store.add_subcommand("read", "Events, in the order of the store");
  read.add_option("--type", options->types, "Of this type; of any of these")
      ->allow_extra_args(false)
      ->type_name("TYPE");
  read.add_option("--tag", options->tags, "With this tag; with all of these")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  read.add_option("--after", options->after, "Behind this position (backwards: below it)")
      ->type_name("POSITION")
      ->check(not_negative());
  read.add_option("--limit", options->limit, "At most so many; 100, and no end with --follow")
      ->type_name("NUMBER")
      ->check(between(1, 100'000'000));
  CLI::Option* const backwards = read.add_flag("--backwards", options->backwards, "The newest first");
  read.add_flag("-f,--follow", options->follow, "Go on with what is appended, until Ctrl-C")
      ->excludes(backwards);
  add_admin_options(read, *options);
  when_chosen(read, chosen, options,
              [](const StoreOptions& given) { return given.follow ? read_on(given) : read_once(given); });
}

void add_append(CLI::App& store, Chosen& chosen) {
  auto options = std::make_shared<StoreOptions>();
  CLI::App& command = *store.add_subcommand("append", "Append an event, perhaps on a condition");
  command.add_option("type", options->type, "What has happened")->type_name("TYPE")->required();
  command.add_option("--data", options->data, "JSON, @file, or - for standard input")
      ->type_name("JSON")
      ->capture_default_str();
  command.add_option("--tag", options->tags, "What it is about; may be given several times")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command.add_option("--metadata", options->metadata, "May be given several times")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--id", options->id, "Its id")->type_name("ID");
  command.add_option("--correlation-id", options->correlation_id, "Which conversation it belongs to")
      ->type_name("ID");
  command.add_option("--causation-id", options->causation_id, "What made it happen")->type_name("ID");
  command.add_option("--fail-if-type", options->fail_types, "Not if an event of this type is there")
      ->type_name("TYPE")
      ->allow_extra_args(false);
  command.add_option("--fail-if-tag", options->fail_tags, "Not if an event with this tag is there")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--after", options->after, "… behind this position")
      ->type_name("POSITION")
      ->check(not_negative());
  when_chosen_on_storage(command, chosen, options, append);
}

}  // namespace

void add_store_commands(CLI::App& app, Chosen& chosen) {
  CLI::App& store = add_group(app, "store", "The event store");
  when_chosen_on_storage(*store.add_subcommand("head", "The last position"), chosen,
                         std::make_shared<AdminOptions>(), print_head);
  add_read(store, chosen);
  add_append(store, chosen);

  CLI::App& projections = add_group(app, "projections", "Views that are made of the queue's log");
  when_chosen_on_storage(*projections.add_subcommand("list", "Which there are, and how far they are"), chosen,
                         std::make_shared<ProjectionCommandOptions>(), list_projections);
  for (const bool pause : {true, false}) {
    auto options = std::make_shared<ProjectionCommandOptions>();
    CLI::App& command = pause ? *projections.add_subcommand("pause", "Stop one, until resume")
                              : *projections.add_subcommand("resume", "Go on, also after FAILED");
    command.add_option("name", options->name, "Which")->type_name("NAME")->required();
    command.add_option("--version", options->version, "Of this version; without it, the live one")
        ->type_name("NUMBER");
    when_chosen_to_change(
        command, chosen, options, [pause](Storage& storage, const ProjectionCommandOptions& given) {
          ProjectionAdmin admin(storage);
          pause ? admin.pause(given.name, given.version) : admin.resume(given.name, given.version);
          return list_projections(storage, given);
        });
  }
}

}  // namespace postrider::cli
