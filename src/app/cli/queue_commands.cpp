// SPDX-License-Identifier: Apache-2.0
// postrider queue …
#include <array>
#include <boost/json.hpp>
#include <iostream>

#include "app/api/counts_json.hpp"
#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"
#include "app/cli/event_page.hpp"
#include "app/cli/filter_options.hpp"
#include "core/age.hpp"
#include "postrider/error.hpp"
#include "postrider/event_log.hpp"
#include "postrider/queue_admin.hpp"
#include "storage/queue_store.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

/// Rows come with their payloads: few at a time.
constexpr std::size_t queue_page = 50;

struct QueueCommandOptions : FilterOptions {
  QueueCommandOptions() { reason = "cancelled from the command line"; }
  std::vector<std::int64_t> ids{};
  std::vector<std::string> event_ids{};
  bool quarantined = false;
  std::size_t limit = 100;
  std::int64_t after = 0;
  std::int64_t id = 0;
  bool even_unread = false;

  [[nodiscard]] bool chosen() const {
    return FilterOptions::chosen() || !ids.empty() || !event_ids.empty() || quarantined;
  }
};

QueueStatus queue_status(const std::string& text) {
  for (const QueueStatus status : {QueueStatus::pending, QueueStatus::processing, QueueStatus::completed,
                                   QueueStatus::completed_with_errors, QueueStatus::failed}) {
    if (text == to_string(status)) return status;
  }
  throw Error(ErrorCode::invalid_argument, "--status '" + text + "' is refused", "there is no such status",
              "there are PENDING and PROCESSING in the queue; COMPLETED, COMPLETED_WITH_ERRORS and FAILED in "
              "the log");
}

std::vector<std::string> log_statuses() {
  return {"COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED"};
}

std::vector<QueueStatus> statuses_of(const std::vector<std::string>& texts) {
  std::vector<QueueStatus> statuses;
  statuses.reserve(texts.size());
  for (const std::string& text : texts) statuses.push_back(queue_status(text));
  return statuses;
}

QueueFilter filter_of(const QueueCommandOptions& options) {
  QueueFilter filter;
  if (!options.ids.empty()) {
    std::vector<QueueId> ids;
    for (const std::int64_t id : options.ids) ids.push_back(QueueId{id});
    filter.ids = std::move(ids);
  }
  if (!options.event_ids.empty()) {
    std::vector<EventId> ids;
    for (const std::string& id : options.event_ids) ids.emplace_back(id);
    filter.event_ids = std::move(ids);
  }
  if (!options.types.empty()) filter.types = options.types;
  if (!options.statuses.empty()) filter.statuses = statuses_of(options.statuses);
  set_if_given(filter.tenant_id, options.tenant);
  set_if_given(filter.error_contains, options.error);
  if (!options.older_than.empty()) filter.older_than = parse_age("--older-than", options.older_than);
  if (!options.stuck_for.empty()) filter.stuck_for = parse_age("--stuck-for", options.stuck_for);
  filter.attempts_at_least = options.attempts;
  if (options.quarantined) filter.quarantined = true;
  if (options.delayed) filter.delayed = true;
  return filter;
}

/// "mail OK; invoice FAILED: no printer", for a table; JSON keeps its shape.
json::value handlers_text(const json::value& results) {
  std::string text;
  const auto text_of = [](const json::object& one, std::string_view name) -> std::string {
    const json::value* const value = one.if_contains(json::string_view(name.data(), name.size()));
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
  };
  if (!results.is_array()) return results;
  for (const json::value& one : results.as_array()) {
    const json::object& result = one.as_object();
    const std::string error = text_of(result, "error");
    text += (text.empty() ? "" : "; ") + text_of(result, "handler") + " " + text_of(result, "result") +
            (error.empty() ? "" : ": " + error);
  }
  return json::value(text);
}

/// As `handlers_text`, where there is a table to be read.
json::object for_format(Format format, json::object one) {
  json::value* const results = one.if_contains("results");
  if (format == Format::table && results != nullptr) *results = handlers_text(*results);
  return one;
}

int print_queue_counts(Storage& storage, const QueueCommandOptions& options) {
  QueueAdmin admin(storage);
  const QueueFilter filter = filter_of(options);
  json::object counts = api::counts_json(admin.counts(filter));
  json::object attempts;
  for (const auto& [number, events] : admin.attempts(filter)) attempts[std::to_string(number)] = events;
  if (options.format == Format::table) {
    std::string text;
    for (const auto& one : attempts) {
      text += (text.empty() ? "" : ", ") + std::string(one.key()) + ": " + api::serialized(one.value());
    }
    counts["attempts"] = text;
  } else {
    counts["attempts"] = std::move(attempts);
  }
  print_object(std::cout, options.format, counts, colour_wanted());
  return 0;
}

int print_queue(Storage& storage, const QueueCommandOptions& options) {
  Table table({{"id", "ID", true},
               {.name = "type", .title = "TYPE", .cut = true},
               {"status", "STATUS"},
               {.name = "attempts", .title = "ATTEMPTS", .right = true, .spare = 2},
               {.name = "crashes", .title = "CRASHES", .right = true, .spare = 3},
               {.name = "createdAt", .title = "PUBLISHED", .spare = 4},
               {.name = "owner", .title = "WORKER", .cut = true, .spare = 1},
               {.name = "quarantinedAt", .title = "QUARANTINED", .spare = 5},
               {.name = "lastError", .title = "LAST ERROR", .cut = true}});
  QueueAdmin admin(storage);
  const QueueFilter filter = filter_of(options);
  QueueId after{options.after};
  for (std::size_t left = options.limit; left > 0;) {
    const std::vector<QueueRecord> page = admin.list(filter, std::min(left, queue_page), after);
    if (page.empty()) break;
    for (const QueueRecord& record : page) table.add(api::brief_json(record));
    left -= page.size();
    after = page.back().id;
  }
  table.print(std::cout, options.format, "There are none.", colour_wanted());
  return 0;
}

/// In the queue with what its handlers have said so far, or in the log with what they said in the end.
int show_queued(Storage& storage, const QueueCommandOptions& options) {
  const QueueId id{options.id};
  if (const std::optional<QueueRecord> record = QueueAdmin(storage).find(id)) {
    std::vector<HandlerResult> results;
    for (QueueStore::EventState& state : storage.queue_store().load_states({&id, 1})) {
      results.push_back(std::move(state.result));
    }
    json::object one = api::whole_json(*record);
    one["results"] = api::results_json(results);
    print_event(std::cout, options.format, for_format(options.format, std::move(one)), colour_wanted());
    return 0;
  }
  if (const std::optional<LogEntry> entry = EventLog(storage).find(id)) {
    print_event(std::cout, options.format, for_format(options.format, api::whole_json(*entry)),
                colour_wanted());
    return 0;
  }
  throw Error(ErrorCode::invalid_argument, "cannot find " + std::to_string(options.id),
              "neither the queue nor its log has an event with this id",
              "the log's entries are removed after some time, see queue.purge-log-after");
}

int print_log(Storage& storage, const QueueCommandOptions& options) {
  LogFilter filter;
  if (!options.types.empty()) filter.types = options.types;
  if (!options.statuses.empty()) filter.statuses = statuses_of(options.statuses);
  Table table({{"seq", "SEQ", true},
               {"id", "ID", true},
               {.name = "type", .title = "TYPE", .cut = true},
               {"status", "STATUS"},
               {.name = "attempts", .title = "ATTEMPTS", .right = true, .spare = 2},
               {.name = "finalizedAt", .title = "FINISHED", .spare = 1},
               {.name = "results", .title = "RESULTS", .cut = true}});
  EventLog log(storage);
  LogSeq after{options.after};
  for (std::size_t left = options.limit; left > 0;) {
    const LogPage page = log.read(after, std::min(left, queue_page), filter);
    for (const LogEntry& entry : page.entries) {
      table.add(for_format(options.format, api::brief_json(entry)));
    }
    left -= page.entries.size();
    if (page.scanned_to == after) break;
    after = page.scanned_to;
  }
  table.print(std::cout, options.format, "There are none.", colour_wanted());
  return 0;
}

/// Whose steps are told.
QueueAdmin stepping_queue(Storage& storage, Change& change) {
  return QueueAdmin(storage, [&change](std::int64_t events) { return change.go_on(events); });
}

int purge_log(Storage& storage, const QueueCommandOptions& options, Change& change) {
  change.begin();
  const LogPurged purged = stepping_queue(storage, change)
                               .purge_log({.older_than = parse_age("--older-than", options.older_than),
                                           .keep_unread = !options.even_unread,
                                           .dry_run = options.dry_run});
  change.done(purged.deleted);
  say_changed(options, purged.deleted, "removed from the log", "would be removed from the log");
  if (const std::string why = purged.why(); !why.empty()) std::cerr << "postrider: " << why << '\n';
  return 0;
}

void add_filter(CLI::App& command, QueueCommandOptions& options, bool of_log) {
  command.add_option("--id", options.ids, "This one; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NUMBER")
      ->check(not_negative());
  command.add_option("--event-id", options.event_ids, "The event's own id")
      ->type_name("ID")
      ->allow_extra_args(false);
  add_event_filter(command, options,
                   of_log ? log_statuses() : std::vector<std::string>{"PENDING", "PROCESSING"},
                   of_log ? "Finished so long ago" : "Published so long ago");
  if (of_log) return;
  command.add_option("--stuck-for", options.stuck_for, "In progress for so long")->type_name("AGE");
  command.add_flag("--quarantined", options.quarantined, "Those in quarantine");
  command.add_flag("--delayed", options.delayed, "Those that are due later");
}

NotFound not_in_queue(Storage& storage, const QueueCommandOptions& options) {
  NotFound missing{.place = "the events of the queue",
                   .hint = "postrider queue show NUMBER says whether one is finished"};
  QueueAdmin admin(storage);
  for (const std::int64_t id : options.ids) {
    if (!admin.find(QueueId{id})) missing.add(std::to_string(id));
  }
  for (const std::string& id : options.event_ids) {
    if (admin.list({.event_ids = std::vector{EventId(id)}}, 1).empty()) missing.add(id);
  }
  return missing;
}

NotFound not_in_log(Storage& storage, const QueueCommandOptions& options) {
  NotFound missing{.place = "the finished events",
                   .hint =
                       "what is still in the queue: postrider queue list; the log's entries are removed "
                       "after some time, see queue.purge-log-after"};
  for (const std::int64_t id : options.ids) {
    if (!EventLog(storage).find(QueueId{id})) missing.add(std::to_string(id));
  }
  for (const std::string& id : options.event_ids) {
    const QueueFilter filter{.event_ids = std::vector{EventId(id)}};
    if (QueueAdmin(storage).replay(filter, true) == 0) missing.add(id);
  }
  return missing;
}

void add_limit(CLI::App& command, QueueCommandOptions& options, const char* after) {
  command.add_option("--limit", options.limit, "At most so many")
      ->check(between(1, 100'000))
      ->capture_default_str();
  command.add_option("--after", options.after, after)->type_name("NUMBER")->check(not_negative());
}

template <class Run>
void add_change(CLI::App& queue, Chosen& chosen, const FilterCommand& words, bool of_log, Run run) {
  add_filter_command<QueueCommandOptions>(
      queue, chosen, words,
      [of_log](CLI::App& command, QueueCommandOptions& options) { add_filter(command, options, of_log); },
      of_log ? not_in_log : not_in_queue,
      [run](Storage& storage, const QueueCommandOptions& given, Change& change) {
        QueueAdmin admin = stepping_queue(storage, change);
        return run(admin, given);
      });
}

void add_changes(CLI::App& queue, Chosen& chosen) {
  using Options = QueueCommandOptions;
  add_change(queue, chosen,
             {"requeue", "Take events from their workers, and let others have them now",
              "put back into the queue", "would be put back into the queue", nullptr,
              "All that workers have, not those that are due later (--delayed)"},
             false,
             [](QueueAdmin& admin, const Options& o) { return admin.requeue(filter_of(o), o.dry_run); });
  add_change(queue, chosen,
             {"cancel", "Take events out of the queue, into the log as FAILED", "cancelled",
              "would be cancelled", "What the log says about them"},
             false, [](QueueAdmin& admin, const Options& o) {
               return admin.cancel(filter_of(o), o.reason, o.dry_run);
             });
  add_change(
      queue, chosen,
      {"release", "Let events out of quarantine", "let out of quarantine", "would be let out of quarantine"},
      false, [](QueueAdmin& admin, const Options& o) { return admin.release(filter_of(o), o.dry_run); });
  add_change(queue, chosen,
             {"replay", "Publish finished events again", "published again", "would be published again"}, true,
             [](QueueAdmin& admin, const Options& o) { return admin.replay(filter_of(o), o.dry_run); });
}

}  // namespace

void add_queue_commands(CLI::App& app, Chosen& chosen) {
  CLI::App& queue = add_group(app, "queue", "Events that workers take, and their log");
  const auto add = [&](const char* name, const char* help, auto describe, auto verb) {
    auto options = std::make_shared<QueueCommandOptions>();
    CLI::App& command = *queue.add_subcommand(name, help);
    describe(command, *options);
    when_chosen_on_storage(command, chosen, options, verb);
  };
  using Options = QueueCommandOptions;
  add(
      "counts", "How many there are, by what they wait for",
      [](CLI::App& command, Options& options) { add_filter(command, options, false); }, print_queue_counts);
  add(
      "list", "What is in the queue",
      [](CLI::App& command, Options& options) {
        add_filter(command, options, false);
        add_limit(command, options, "Behind this id");
      },
      print_queue);
  add(
      "stuck", "What has been in progress for long",
      [](CLI::App& command, Options& options) {
        options.stuck_for = "5m";
        command.add_option("--for", options.stuck_for, "So long, or longer")
            ->type_name("AGE")
            ->capture_default_str();
        add_limit(command, options, "Behind this id");
      },
      print_queue);
  add(
      "show", "One event, with payload, headers, what its handlers said and the attempts that failed",
      [](CLI::App& command, Options& options) {
        command.add_option("id", options.id, "Its number in the queue")
            ->type_name("NUMBER")
            ->check(not_negative())
            ->required();
      },
      show_queued);
  add_changes(queue, chosen);
  add(
      "log", "Finished events, in the order of their end",
      [](CLI::App& command, Options& options) {
        command.add_option("--type", options.types, "Of this type")
            ->type_name("TYPE")
            ->allow_extra_args(false);
        add_statuses(command, options, log_statuses());
        add_limit(command, options, "Behind this number of the log");
      },
      print_log);
  auto options = std::make_shared<Options>();
  CLI::App& remove = *queue.add_subcommand("purge", "Remove old entries of the log, in small transactions");
  remove.add_option("--older-than", options->older_than, "Finished so long ago: 30d")
      ->type_name("AGE")
      ->required();
  remove.add_flag("--dry-run", options->dry_run, "Only count them");
  remove.add_flag("--even-unread", options->even_unread, "Also what a projection has yet to read");
  when_chosen_to_change(remove, chosen, options, purge_log);
}

}  // namespace postrider::cli
