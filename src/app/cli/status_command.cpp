// SPDX-License-Identifier: Apache-2.0
// postrider status
#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>
#include <span>
#include <sstream>

#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"
#include "app/api/relay_api.hpp"
#include "app/cli/admin_options.hpp"
#include "app/cli/exit_codes.hpp"
#include "app/cli/interrupts.hpp"
#include "app/cli/snapshot.hpp"
#include "app/cli/terminal.hpp"
#include "core/age.hpp"
#include "core/rfc3339.hpp"
#include "core/utf8.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

/// One screen: of long lists those that matter most.
constexpr std::size_t most_rows = 12;
constexpr std::size_t most_findings = 6;
constexpr std::size_t longest_error = 100;

/// Whether events move is not known yet, but this is.
std::string last_error_text(const std::string& error) {
  if (error.empty()) return {};
  const std::string shown = cell(json::value(std::string(utf8_prefix(error, longest_error))));
  return ": " + shown + (utf8_length(error).value_or(error.size()) > longest_error ? "…" : "");
}

struct StatusOptions : AdminOptions {
  bool watch = false;
};

std::string age_text(Duration age) {
  return age < 1s ? "none waits" : "oldest waits " + format_about(age);
}

void print_rows(std::ostream& out, const Table& table, std::size_t shown, std::size_t all, bool colour) {
  table.print(out, Format::table, "", colour);
  if (shown < all) out << "… and " << all - shown << " more\n";
}

/// Those first that are not as they should be.
void screen_pairs(std::ostream& out, std::vector<PairStatus> pairs, bool colour) {
  if (pairs.empty()) return;
  std::stable_sort(pairs.begin(), pairs.end(), [](const PairStatus& a, const PairStatus& b) {
    if ((a.state != PairState::active) != (b.state != PairState::active)) return a.state != PairState::active;
    return a.lag_events > b.lag_events;
  });
  Table table({{"topic", "TOPIC"},
               {"publisher", "PUBLISHER"},
               {"status", "STATUS"},
               {"lagEvents", "LAG", true},
               {.name = "lagSeconds", .title = "SECONDS", .right = true, .spare = 1},
               {.name = "deadLetters", .title = "DEAD", .right = true, .spare = 2},
               {.name = "leader", .title = "LEADER", .cut = true, .spare = 3},
               {.name = "lastError", .title = "LAST ERROR", .cut = true}});
  const std::size_t shown = std::min(pairs.size(), most_rows);
  for (std::size_t i = 0; i < shown; ++i) table.add(api::pair_json(pairs[i]));
  out << '\n';
  print_rows(out, table, shown, pairs.size(), colour);
}

void screen_projections(std::ostream& out, const std::vector<ProjectionStatus>& projections, bool colour) {
  if (projections.empty()) return;
  Table table({{"name", "PROJECTION"},
               {"version", "VERSION", true},
               {"status", "STATUS"},
               {.name = "live", .title = "LIVE", .spare = 1},
               {"lagEvents", "LAG", true},
               {.name = "owner", .title = "NODE", .cut = true, .spare = 2},
               {.name = "lastError", .title = "LAST ERROR", .cut = true}});
  const std::size_t shown = std::min(projections.size(), most_rows);
  for (std::size_t i = 0; i < shown; ++i) table.add(api::projection_json(projections[i]));
  out << '\n';
  print_rows(out, table, shown, projections.size(), colour);
}

std::string leaders_text(const std::vector<LeaderStatus>& leaders,
                         const std::vector<StandbyStatus>& standbys) {
  std::string text;
  std::size_t dead = 0;
  for (const LeaderStatus& leader : leaders) {
    if (!leader.alive) {
      ++dead;
      continue;
    }
    text += (text.empty() ? "" : ", ") + cell(json::value(leader.node)) + " (" +
            counted(static_cast<std::size_t>(std::max<std::int64_t>(leader.pairs, 0)), "pair") + ", epoch " +
            std::to_string(static_cast<std::int64_t>(leader.epoch)) + ")";
  }
  if (text.empty()) text = "none";
  std::string waiting;
  for (const StandbyStatus& one : standbys) {
    waiting += (waiting.empty() ? "; standing by: " : ", ") + cell(json::value(one.node));
  }
  text += waiting;
  return dead == 0 ? text : text + "; " + std::to_string(dead) + " gone";
}

/// The worst first, a line for each, with what to do about it.
std::string stuck_text(const std::vector<daemon::Finding>& findings) {
  constexpr const char* next_line = "\n             ";
  std::string text;
  for (const daemon::Finding& one : std::span(findings).first(std::min(findings.size(), most_findings))) {
    text += (text.empty() ? "" : next_line) + cell(json::value(one.text)) +
            ". Hint: " + cell(json::value(one.hint));
  }
  if (findings.size() > most_findings) {
    text += next_line + std::string("… and ") + std::to_string(findings.size() - most_findings) +
            " more: postrider status -o json";
  }
  return text;
}

void print_screen(std::ostream& out, const Snapshot& now, bool colour) {
  const auto line = [&](const char* name, const std::string& text) {
    out << (colour ? "\x1b[1m" : "") << name << (colour ? "\x1b[0m" : "") << text << '\n';
  };
  line("database     ", now.storage + "  (" + now.kind + ", " + format_time(now.at) + ")");
  if (!now.schema_fits()) {
    line("schema       ", "version " + std::to_string(now.schema_version) + ", this program needs " +
                              std::to_string(now.schema_needed) + ": postrider migrate");
    return;
  }
  line("schema       ", "version " + std::to_string(now.schema_version));
  line("outbox       ", std::to_string(now.outbox.pending) + " pending (" +
                            std::to_string(now.outbox.retrying) + " tried and not taken" +
                            last_error_text(now.outbox.last_error) + "), " + std::to_string(now.outbox.done) +
                            " done, " + std::to_string(now.outbox.dead) + " dead; " +
                            age_text(now.outbox.oldest_undelivered));
  line("queue        ", std::to_string(now.queue.pending) + " pending, " + std::to_string(now.queue.delayed) +
                            " delayed, " + std::to_string(now.queue.processing) + " in progress (" +
                            std::to_string(now.queue.abandoned) + " abandoned), " +
                            std::to_string(now.queue.quarantined) + " in quarantine; " +
                            age_text(now.queue.oldest_pending));
  line("event log    ", "up to " + std::to_string(static_cast<std::int64_t>(now.log_head)));
  line("event store  ", "up to position " + std::to_string(static_cast<std::int64_t>(now.head)));
  line("leaders      ", leaders_text(now.leaders, now.standbys));
  // What has been tried once and was not taken is no finding before its patience is over; nor is it moving.
  const std::string none = now.outbox.retrying > 0 ? "not yet: see what was tried and not taken"
                                                   : "no: " + daemon::stuck_line(now.findings);
  line("stuck        ", now.findings.empty() ? none : stuck_text(now.findings));
  screen_pairs(out, now.pairs, colour);
  screen_projections(out, now.projections, colour);
}

std::string rendered(const Snapshot& snapshot, Format format, bool colour) {
  if (format == Format::json) return api::serialized(snapshot_json(snapshot)) + "\n";
  std::ostringstream out;
  print_screen(out, snapshot, colour);
  return out.str();
}

/// A database that is away is told, and waited for.
int watch(const StatusOptions& options) {
  const Interrupts interrupts;  // before there are other threads
  const Database database = open_database(options);
  const bool screen = output_is_terminal() && options.format == Format::table;
  do {
    std::string text;
    try {
      text = rendered(take_snapshot(database), options.format, colour_wanted());
    } catch (const Error& error) {
      if (!error.retryable() && !error.connection_lost() && error.code() != ErrorCode::unavailable) throw;
      text = options.format == Format::json
                 ? api::serialized(
                       json::object{{"storage", database.storage->name()}, {"error", what_of(error)}}) +
                       "\n"
                 : what_of(error) + "\n";
    }
    // In one piece, so that the screen does not flicker.
    std::cout << (screen ? "\x1b[H\x1b[2J" + text + "\nevery second, Ctrl-C ends\n" : text) << std::flush;
    if (reader_has_left()) return 0;
  } while (!interrupts.wait_for(1s));
  return 0;
}

int run_status(const StatusOptions& options) {
  if (options.watch) return watch(options);
  const Snapshot snapshot = take_snapshot(open_database(options));
  std::cout << rendered(snapshot, options.format, colour_wanted());
  if (snapshot.schema_fits()) return exit_ok;
  const std::string version = std::to_string(snapshot.schema_version);
  std::cerr << what_of(Error(ErrorCode::schema, "cannot say how everything stands",
                             snapshot.schema_version == 0
                                 ? "the tables are not there"
                                 : "the tables have version " + version + ", this program needs version " +
                                       std::to_string(snapshot.schema_needed),
                             "postrider migrate makes them"))
            << '\n';
  return exit_failed;
}

}  // namespace

void add_status_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App& command = *app.add_subcommand("status", "How everything stands, on one screen");
  command.add_flag("-w,--watch", options->watch, "Again every second, until Ctrl-C");
  add_admin_options(command, *options);
  when_chosen(command, chosen, options, run_status);
}

}  // namespace postrider::cli
