// SPDX-License-Identifier: Apache-2.0
// postrider bench: how fast a database of one's own is, measured in tables of their own.
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <iostream>
#include <vector>

#include "app/cli/admin_options.hpp"
#include "app/cli/bench_measures.hpp"
#include "app/cli/exit_codes.hpp"
#include "app/cli/interrupts.hpp"
#include "app/cli/terminal.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"

namespace postrider::cli {
namespace {

constexpr const char* bench_schema = "postrider_bench";

struct BenchOptions : AdminOptions {
  BenchOptions() { schema = bench_schema; }
  std::int64_t seconds = 5;
  std::int64_t events = 0;
};

/// Tables for the measurements alone: made here, gone when this object is.
class Scratch {
 public:
  explicit Scratch(Database& database) : database_(database) {
    if (exists()) {
      throw Error(ErrorCode::invalid_argument, "cannot measure in " + database.storage->name(),
                  schema() + " exists already" +
                      (is_usual() ? ": another bench is running, or was killed" : ", and may be in use"),
                  is_usual() ? "when none runs, remove it: postrider migrate --schema " + schema() +
                                   " --to 0 --yes --storage ..."
                             : "choose a name that is not there yet");
    }
    database_.storage->migrate();
  }
  ~Scratch() {
    try {
      remove();
    } catch (const std::exception& error) {
      std::cerr << "postrider: cannot remove the tables of " << schema() << ": " << what_of(error) << '\n';
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  /// Nobody but a bench has made it.
  [[nodiscard]] bool is_usual() const { return schema() == bench_schema; }
  [[nodiscard]] std::string schema() const { return database_.options.schema.str(); }
  [[nodiscard]] bool exists() {
    if (database_.storage->migrate({.dry_run = true}).from != 0) return true;
    if (database_.storage->kind() != BackendKind::postgres) return false;
    Transaction tx = database_.storage->begin();
    return !tx.execute("select 1 from pg_catalog.pg_namespace where nspname = ?", schema()).empty();
  }
  void remove() {
    database_.storage->migrate({.target = 0});
    if (database_.storage->kind() == BackendKind::postgres) return;  // the schema is gone with its last table
    Transaction tx = database_.storage->begin();
    tx.execute("drop table if exists " + database_.table("schema_migrations"));
    tx.commit();
  }

  Database& database_;
};

struct Measure {
  const char* what;
  BenchResult (*run)(Storage&, const BenchLimits&);
};
constexpr std::array<Measure, 3> measures{
    {{"outbox", measure_outbox}, {"queue", measure_queue}, {"event store", measure_store}}};

double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

Database open_scratch_database(const BenchOptions& options) {
  Database opened = resolve(options);
  opened.options.schema = Identifier(options.schema);  // whatever a configuration says
  require_database(opened);
  opened.storage = open(opened.url, opened.options);
  return opened;
}

int run_bench(const BenchOptions& options) {
  const Interrupts interrupts;
  Database database = open_scratch_database(options);
  std::vector<BenchResult> results;
  bool ended = false;
  {
    const Scratch scratch(database);
    for (const Measure& measure : measures) {
      if (ended) break;
      Progress progress(measure.what);
      const SteadyPoint begin = Clock::system().steady_now();
      const std::int64_t all = options.events > 0 ? options.events : options.seconds * 1000;
      BenchLimits limits{.time = std::chrono::seconds(options.seconds), .events = options.events};
      limits.go_on = [&](std::int64_t events) {
        const auto time = Clock::system().steady_now() - begin;
        progress.show(
            options.events > 0 ? events : std::chrono::duration_cast<std::chrono::milliseconds>(time).count(),
            all);
        ended = ended || interrupts.wait_for(std::chrono::milliseconds{0});
        return !ended;
      };
      results.push_back(measure.run(*database.storage, limits));
    }
  }
  if (ended) {
    std::cerr << "postrider: interrupted; the tables of the bench are removed\n";
    return exit_failed;
  }
  Table table({{"name", "WHAT"},
               {"events", "EVENTS", true},
               {"perSecond", "PER SECOND", true},
               {"p50Ms", "P50 MS", true},
               {"p99Ms", "P99 MS", true}});
  for (const BenchResult& one : results) {
    table.add({{"name", one.name},
               {"events", one.events},
               {"seconds", rounded(one.seconds)},
               {"perSecond", std::llround(one.per_second())},
               {"p50Ms", rounded(one.p50_ms)},
               {"p99Ms", rounded(one.p99_ms)}});
  }
  table.print(std::cout, options.format, "", colour_wanted());
  return exit_ok;
}

}  // namespace

void add_bench_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App& command = *app.add_subcommand(
      "bench", "Measure this database with outbox, queue and event store, in tables that are removed again");
  add_admin_options(command, *options);
  // Neither the environment's nor the configuration's: those are the tables that are in use.
  command.remove_option(command.get_option("--schema"));
  command
      .add_option("--schema", options->schema,
                  "Schema (PostgreSQL) or table prefix of its own tables; must not be there yet")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--seconds", options->seconds, "How long each of the three goes on at most")
      ->check(between(1, 60))
      ->capture_default_str();
  command.add_option("--events", options->events, "Each ends after so many events")
      ->type_name("NUMBER")
      ->check(between(1, 1'000'000));
  when_chosen(command, chosen, options, run_bench);
}

}  // namespace postrider::cli
