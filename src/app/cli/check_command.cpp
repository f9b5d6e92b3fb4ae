// SPDX-License-Identifier: Apache-2.0
// postrider check: for monitoring systems that ask, instead of scraping /metrics.
#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <map>

#include "app/api/json_values.hpp"
#include "app/cli/admin_options.hpp"
#include "app/cli/exit_codes.hpp"
#include "app/cli/snapshot.hpp"
#include "core/age.hpp"
#include "core/what_of.hpp"
#include "core/without_prefix.hpp"
#include "core/wording.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

enum class CheckFormat { nagios, prometheus, json };
/// As Nagios has them.
enum class State { ok = 0, warning = 1, critical = 2, unknown = 3 };

constexpr std::string_view name_of(State state) {
  constexpr std::string_view names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  return names[static_cast<std::size_t>(state)];
}

struct CheckOptions : AdminOptions {
  CheckFormat check_format = CheckFormat::nagios;
  std::int64_t warn_lag = 10'000;
  std::int64_t crit_lag = 100'000;
  std::string warn_age = "5m";
  std::string crit_age = "30m";
  std::int64_t warn_dead = 1;
  std::int64_t crit_dead = 1'000;
  std::int64_t warn_relay_dead = 1;
  std::int64_t crit_relay_dead = 1'000;
  std::int64_t warn_quarantined = 1;
  std::int64_t crit_quarantined = 100;
};

/// A figure and its bounds.
struct Figure {
  std::string name;  ///< "outbox_pending"
  double value = 0;
  std::string unit{};
  std::optional<double> warn{};
  std::optional<double> critical{};
};

struct Verdict {
  State state = State::ok;
  std::vector<std::string> reasons{};
  std::vector<Figure> figures{};

  void worst(State other, std::string reason) {
    state = std::max(state, other);
    reasons.push_back(std::move(reason));
  }
};

std::string number_text(double value) {
  char text[32];
  const int size = std::snprintf(text, sizeof(text), "%.15g", value);  // NOLINT: vararg by design
  return {text, static_cast<std::size_t>(size)};
}

void judge(Verdict& verdict, Figure figure, const std::string& words) {
  // A time is read by a person; its number stands among the figures.
  const bool is_time = figure.unit == "s";
  const std::string said =
      words + " " +
      (is_time
           ? format_about(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(figure.value)))
           : number_text(figure.value));
  if (figure.critical && figure.value >= *figure.critical) {
    verdict.worst(State::critical, said);
  } else if (figure.warn && figure.value >= *figure.warn) {
    verdict.worst(State::warning, said);
  }
  verdict.figures.push_back(std::move(figure));
}

void judge_pairs(Verdict& verdict, const Snapshot& now, const CheckOptions& options) {
  std::int64_t lag = 0;
  std::int64_t dead = 0;
  std::int64_t failed = 0;
  std::int64_t paused = 0;
  std::string names;
  for (const PairStatus& pair : now.pairs) {
    lag = std::max(lag, pair.lag_events);
    dead += pair.dead_letters;
    if (pair.state == PairState::paused) ++paused;
    if (pair.state != PairState::failed) continue;
    if (++failed <= 3)
      names += (names.empty() ? "" : ", ") + cell(json::value(pair.name.topic + "/" + pair.name.publisher));
  }
  if (failed > 0)
    verdict.worst(State::critical, counted(static_cast<std::size_t>(failed), "pair") + " FAILED: " + names);
  if (paused > 0)
    verdict.worst(State::warning, counted(static_cast<std::size_t>(paused), "pair") + " PAUSED");
  const bool led =
      std::any_of(now.leaders.begin(), now.leaders.end(), [](const LeaderStatus& one) { return one.alive; });
  if (!now.pairs.empty() && !led) verdict.worst(State::critical, "no relay leads: no node is alive");
  judge(verdict,
        {"relay_lag_events",
         static_cast<double>(lag),
         {},
         static_cast<double>(options.warn_lag),
         static_cast<double>(options.crit_lag)},
        "relay lag");
  judge(verdict,
        {"relay_dead_letters",
         static_cast<double>(dead),
         {},
         static_cast<double>(options.warn_relay_dead),
         static_cast<double>(options.crit_relay_dead)},
        "relay: dead letters");
  verdict.figures.push_back({"relay_pairs_failed", static_cast<double>(failed)});
  verdict.figures.push_back({"relay_pairs_paused", static_cast<double>(paused)});
}

Verdict judged(const Snapshot& now, const CheckOptions& options) {
  Verdict verdict;
  if (!now.schema_fits()) {
    verdict.worst(State::critical, "the tables have version " + std::to_string(now.schema_version) +
                                       ", version " + std::to_string(now.schema_needed) +
                                       " is needed: postrider migrate");
    return verdict;
  }
  const double warn_age = api::seconds(parse_age("--warn-age", options.warn_age));
  const double crit_age = api::seconds(parse_age("--crit-age", options.crit_age));
  verdict.figures.push_back({"outbox_pending", static_cast<double>(now.outbox.pending)});
  verdict.figures.push_back({"outbox_retrying", static_cast<double>(now.outbox.retrying)});
  judge(verdict,
        {"outbox_oldest_seconds", api::seconds(now.outbox.oldest_undelivered), "s", warn_age, crit_age},
        "outbox: oldest event waits");
  if (now.outbox.retrying > 0) {
    // No alarm by itself: how long they wait decides.
    verdict.worst(State::ok, "outbox: " + std::to_string(now.outbox.retrying) + " tried and not taken" +
                                 (now.outbox.last_error.empty()
                                      ? ""
                                      : ", the last error: " + cell(json::value(now.outbox.last_error))));
  }
  judge(verdict,
        {"outbox_dead",
         static_cast<double>(now.outbox.dead),
         {},
         static_cast<double>(options.warn_dead),
         static_cast<double>(options.crit_dead)},
        "outbox: dead letters");
  verdict.figures.push_back({"queue_pending", static_cast<double>(now.queue.pending)});
  judge(verdict, {"queue_oldest_seconds", api::seconds(now.queue.oldest_pending), "s", warn_age, crit_age},
        "queue: oldest event waits");
  judge(verdict,
        {"queue_quarantined",
         static_cast<double>(now.queue.quarantined),
         {},
         static_cast<double>(options.warn_quarantined),
         static_cast<double>(options.crit_quarantined)},
        "queue: in quarantine");
  judge_pairs(verdict, now, options);
  std::int64_t failed = 0;
  for (const ProjectionStatus& one : now.projections) failed += one.state == ProjectionState::failed ? 1 : 0;
  if (failed > 0)
    verdict.worst(State::critical, counted(static_cast<std::size_t>(failed), "projection") + " FAILED");
  verdict.figures.push_back({"projections_failed", static_cast<double>(failed)});
  return verdict;
}

std::string reasons_text(const Verdict& verdict) {
  std::string text;
  for (const std::string& reason : verdict.reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

void print_nagios(const Verdict& verdict) {
  const std::string reasons = reasons_text(verdict);
  std::string line = "POSTRIDER " + std::string(name_of(verdict.state)) + " - " +
                     (reasons.empty() ? "nothing is stuck" : reasons);
  // What stands behind the bar is data.
  std::replace(line.begin(), line.end(), '|', '/');
  std::cout << line;
  const auto bound = [](const std::optional<double>& value) {
    return value ? number_text(*value) : std::string();
  };
  for (std::size_t i = 0; i < verdict.figures.size(); ++i) {
    const Figure& one = verdict.figures[i];
    std::cout << (i == 0 ? " | " : " ") << one.name << '=' << number_text(one.value) << one.unit << ';'
              << bound(one.warn) << ';' << bound(one.critical) << ";0";
  }
  std::cout << '\n';
}

void print_prometheus(const Verdict& verdict) {
  const auto gauge = [](const std::string& name, const std::string& help, double value) {
    std::cout << "# HELP postrider_check_" << name << ' ' << help << "\n# TYPE postrider_check_" << name
              << " gauge\npostrider_check_" << name << ' ' << number_text(value) << '\n';
  };
  gauge("state", "0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.", static_cast<double>(verdict.state));
  for (const Figure& one : verdict.figures) {
    std::string help = one.name;
    std::replace(help.begin(), help.end(), '_', ' ');
    gauge(one.name, "As postrider check has seen it: " + help + ".", one.value);
  }
}

void print_json(const Verdict& verdict) {
  json::array reasons;
  for (const std::string& reason : verdict.reasons) reasons.push_back(json::value(reason));
  json::object figures;
  for (const Figure& one : verdict.figures) {
    figures[one.name] =
        json::object{{"value", one.value},
                     {"warn", one.warn ? json::value(*one.warn) : json::value(nullptr)},
                     {"critical", one.critical ? json::value(*one.critical) : json::value(nullptr)}};
  }
  std::cout << api::serialized(json::object{{"status", name_of(verdict.state)},
                                            {"reasons", std::move(reasons)},
                                            {"figures", std::move(figures)}})
            << '\n';
}

int run_check(const CheckOptions& options) {
  Verdict verdict;
  try {
    verdict = judged(take_snapshot(open_database(options)), options);
  } catch (const std::exception& error) {
    std::string why(without_prefix(what_of(error)));
    std::replace(why.begin(), why.end(), '\n', ' ');
    verdict = {.state = State::unknown, .reasons = {std::move(why)}};
  }
  const CheckFormat format = options.format == Format::json ? CheckFormat::json : options.check_format;
  switch (format) {
    case CheckFormat::nagios:
      print_nagios(verdict);
      break;
    case CheckFormat::prometheus:
      print_prometheus(verdict);
      break;
    case CheckFormat::json:
      print_json(verdict);
      break;
  }
  return static_cast<int>(verdict.state);
}

}  // namespace

void add_check_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App& command = *app.add_subcommand("check", "Say OK, WARNING or CRITICAL, for a monitoring system");
  command.add_option("--format", options->check_format, "nagios, prometheus or json")
      ->type_name("FORMAT")
      ->transform(one_of<CheckFormat>({{"nagios", CheckFormat::nagios},
                                       {"prometheus", CheckFormat::prometheus},
                                       {"json", CheckFormat::json}}));
  const auto number = [&](const char* name, std::int64_t& value, const char* help) {
    command.add_option(name, value, help)->type_name("NUMBER")->check(not_negative())->capture_default_str();
  };
  number("--warn-lag", options->warn_lag, "Events that the pair furthest behind has yet to publish");
  number("--crit-lag", options->crit_lag, "The same");
  command.add_option("--warn-age", options->warn_age, "How long the oldest event of outbox or queue waits")
      ->type_name("AGE")
      ->capture_default_str();
  command.add_option("--crit-age", options->crit_age, "The same")->type_name("AGE")->capture_default_str();
  number("--warn-dead", options->warn_dead, "Dead letters of the outbox");
  number("--crit-dead", options->crit_dead, "The same");
  number("--warn-relay-dead", options->warn_relay_dead, "Dead letters of the relay");
  number("--crit-relay-dead", options->crit_relay_dead, "The same");
  number("--warn-quarantined", options->warn_quarantined, "Events of the queue in quarantine");
  number("--crit-quarantined", options->crit_quarantined, "The same");
  add_admin_options(command, *options);
  when_chosen(command, chosen, options, run_check);
}

}  // namespace postrider::cli
