// SPDX-License-Identifier: Apache-2.0
#include "app/cli/eventlog_command.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "app/api/retention.hpp"
#include "app/cli/admin_options.hpp"
#include "app/cli/command.hpp"
#include "app/cli/run_daemon.hpp"
#include "core/age.hpp"
#include "core/rfc3339.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"

namespace postrider::cli {
namespace {

/// A count may walk over the whole index, and nobody waits for it but who has asked.
constexpr Duration purge_patience = std::chrono::minutes{30};
constexpr Duration pause_between_lines = std::chrono::seconds{2};

/// Opening would make the file, and a typing error look like an empty log.
void require_file(const std::string& url) {
  const std::optional<std::string> path = sqlite_file(url);
  if (!path || std::filesystem::exists(*path)) return;
  throw Error(ErrorCode::unavailable, "cannot purge " + url, "there is no such file",
              "is --storage the one that `postrider eventlog` serves?");
}

void say_purged(const EventlogPurgeOptions& options, std::int64_t events, TimePoint time) {
  if (options.format == Format::json) {
    std::cout << boost::json::serialize(boost::json::object{
                     {"dryRun", options.dry_run}, {"events", events}, {"before", format_time(time)}})
              << std::endl;
    return;
  }
  const std::string which =
      counted(static_cast<std::size_t>(events), "event") + " from before " + format_time(time);
  if (options.dry_run) {
    std::cout << "postrider: there " << (events == 1 ? "is " : "are ") << which << "; nothing was removed"
              << std::endl;
  } else {
    std::cout << "postrider: removed " << which << std::endl;
  }
}

int purge(const EventlogPurgeOptions& options, Database& database, Duration age, Change& change) {
  const TimePoint time = Clock::system().now() - age;
  database.options.io_timeout = purge_patience;
  database.storage = open(database.url, database.options);
  EntryStore& store = database.storage->entry_store();
  const std::int64_t all = store.count_before(time);
  if (options.dry_run) {
    say_purged(options, all, time);
    return 0;
  }
  change.begin();
  SteadyPoint next_line = Clock::system().steady_now() + pause_between_lines;
  const std::int64_t removed = api::purge_entries(store, time, [&](std::int64_t so_far) {
    if (options.format == Format::table && Clock::system().steady_now() >= next_line) {
      next_line += pause_between_lines;
      std::cout << "postrider: removed " << so_far << " of " << std::max(all, so_far) << std::endl;
    }
    return change.go_on(so_far);
  });
  change.done(removed);
  say_purged(options, removed, time);
  return 0;
}

void add_purge(CLI::App& eventlog, Chosen& chosen) {
  auto options = std::make_shared<EventlogPurgeOptions>();
  CLI::App& command = *eventlog.add_subcommand("purge", "Remove old events, in small transactions");
  command.add_option("--older-than", options->older_than, "Age by their timestamps: 90d, 12h, 2w")
      ->type_name("AGE")
      ->required();
  command.add_flag("--dry-run", options->dry_run, "Only count them");
  add_admin_options(command, *options);
  say_it_changes(command, chosen, options);
  when_chosen(command, chosen, options, [&change = chosen.change](const EventlogPurgeOptions& given) {
    return run_purge(given, change);
  });
}

}  // namespace

void add_eventlog_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<EventlogOptions>();
  CLI::App& command = *app.add_subcommand("eventlog", "Serve the Event Log API (see docs/eventlog-api.md)");
  command.add_option("--listen", options->listen, "Address and port; loopback only")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  add_storage_options(command, options->storage, options->schema, false);
  command.add_option("--max-connections", options->max_connections, "Connections at a time")
      ->check(between(1, 100'000))
      ->capture_default_str();
  command.add_option("--max-batch", options->max_batch, "Events in one batch")
      ->check(between(1, 100'000))
      ->capture_default_str();
  command
      .add_option("--request-timeout", options->request_seconds,
                  "Seconds until a request that the database does not answer is told to try again")
      ->check(between(1, 3600))
      ->capture_default_str();
  command.add_option("--drain-timeout", options->drain_seconds, "Seconds for open requests after SIGTERM")
      ->check(between(0, 3600))
      ->capture_default_str();
  command.add_flag("--no-wait", options->no_wait,
                   "Fail when the database is away at the start, instead of waiting for it");
  command.add_flag("--relaxed-sync", options->relaxed_sync,
                   "SQLite: faster, but a power cut may lose the last events");
  command.add_option("--retention", options->retention, "Remove events as they get older than this: 90d")
      ->type_name("AGE");
  command.callback([&command, &chosen, options] {
    if (!command.get_subcommands().empty()) return;  // purge
    // Not `required`, which would hold for `purge` as well.
    if (options->storage.empty()) throw CLI::RequiredError("--storage");
    chosen.run = [options] { return run_eventlog(*options); };
  });
  add_purge(command, chosen);
}

int run_eventlog(const EventlogOptions& options) {
  config::DaemonConfig config;
  config.storage.url = options.storage;
  config.storage.options.schema = Identifier(options.schema);
  config.storage.options.sqlite_full_sync = !options.relaxed_sync;
  config.storage.wait = !options.no_wait;
  config.server.listen = options.listen;
  config.server.max_connections = options.max_connections;
  config.server.request_timeout = std::chrono::seconds(options.request_seconds);
  config.server.drain_timeout = std::chrono::seconds(options.drain_seconds);
  config.server.management = false;
  config.server.metrics = false;
  config.eventlog.enabled = true;
  config.eventlog.max_batch = options.max_batch;
  if (!options.retention.empty()) config.eventlog.retention = parse_age("--retention", options.retention);
  return run_daemon(config, {.what = "event log API on"});
}

int run_purge(const EventlogPurgeOptions& options, Change& change) {
  const Duration age = parse_age("--older-than", options.older_than);
  Database database = resolve(options);
  require_file(database.url);
  try {
    return purge(options, database, age, change);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::schema) throw;
    // The library's hint is for programs.
    throw Error(
        ErrorCode::schema, "cannot purge the event log",
        "the tables of the event log are not there, or those of another version",
        "are --storage and --schema those that `postrider eventlog` serves? It makes and migrates the "
        "tables when it starts");
  }
}

}  // namespace postrider::cli
