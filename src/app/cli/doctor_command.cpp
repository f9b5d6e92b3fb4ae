// SPDX-License-Identifier: Apache-2.0
// postrider doctor
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "app/cli/doctor_checks.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration doctor_patience = 15s;

/// The tables that migrations make, known by the statements that would remove them.
std::vector<std::string> all_tables(Storage& storage) {
  std::vector<std::string> tables;
  const MigrationReport down = storage.migrate({.target = 0, .dry_run = true});
  for (const MigrationStep& step : down.steps) {
    std::string_view sql = step.sql;
    constexpr std::string_view words = "DROP TABLE ";
    for (std::size_t at = sql.find(words); at != std::string_view::npos; at = sql.find(words)) {
      sql.remove_prefix(at + words.size());
      constexpr std::string_view if_exists = "IF EXISTS ";
      if (sql.starts_with(if_exists)) sql.remove_prefix(if_exists.size());
      tables.emplace_back(sql.substr(0, sql.find_first_of(" ;\n")));
    }
  }
  return tables;
}

std::string which(const Database& database, const AdminOptions& options) {
  if (options.storage.empty()) return "-c " + options.config;
  return "--storage " + database.storage->name() +
         (options.schema == "postrider" ? "" : " --schema " + options.schema);
}

void check_database(const Database& database, const AdminOptions& options, Findings& findings) {
  Inspector inspector(database, doctor_patience);
  const MigrationReport schema = database.storage->migrate({.dry_run = true});
  if (schema.from != schema.to) {
    findings.bad("schema",
                 schema.from == 0 ? "the tables are not there"
                                  : "it has version " + std::to_string(schema.from) +
                                        ", this program needs " + std::to_string(schema.to),
                 "postrider migrate " + which(database, options));
  } else {
    findings.ok("schema", "version " + std::to_string(schema.from));
    check_schema(database, inspector, findings);
  }
  switch (database.storage->kind()) {
    case BackendKind::postgres:
      check_postgres(inspector, findings);
      break;
    case BackendKind::mariadb:
      check_mariadb(inspector, findings);
      break;
    case BackendKind::sqlite:
      check_sqlite(database, inspector, findings);
      return;  // its clock is ours
  }
  check_clock(inspector, findings);
}

/// What the storage says by itself while it connects.
class Heard {
 public:
  [[nodiscard]] LogCallback callback() {
    return [this](LogLevel /*level*/, std::string_view line) {
      const MutexLock lock(mutex_);
      if (line.find("transaction-mode pooler") != std::string_view::npos) pooler_ = true;
    };
  }
  [[nodiscard]] bool pooler() const {
    const MutexLock lock(mutex_);
    return pooler_;
  }

 private:
  mutable Mutex mutex_;
  bool pooler_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

int run_doctor(const AdminOptions& options) {
  Findings findings;
  std::string config = options.storage.empty() ? options.config : std::string();
  if (!config.empty()) check_files(config, config::read_daemon_config(config).config, findings);
  Heard heard;
  try {
    Database database = resolve(options);
    const std::optional<std::string> file = sqlite_file(database.url);
    if (file && ::access(file->c_str(), F_OK) != 0) {
      findings.bad("database", "there is no file " + std::filesystem::absolute(*file).string(),
                   database.how_to_make());
    } else {
      database.options.log = heard.callback();
      database.storage = open(database.url, database.options);
      database.storage->ping();
      findings.ok("database", database.storage->name() + " answers");
      check_database(database, options, findings);
    }
  } catch (const Error& error) {
    findings.bad("database", what_of(error), "see the hint; nothing behind it was looked at");
  }
  if (heard.pooler()) {
    findings.note(
        "pooler",
        "the database is reached through a transaction-mode pooler: nodes find new events by polling, and "
        "a dead leader is noticed when its lease ends",
        "for more speed name the server itself in the URL, or give Postrider a pool in session mode");
  }
  findings.print(std::cout, options.format, "finding");
  const std::size_t bad = findings.bad_ones();
  if (options.format == Format::table) {
    std::cout << (bad == 0 ? std::string("postrider: all is well") : "postrider: " + counted(bad, "finding"))
              << '\n';
  }
  return bad == 0 ? 0 : 1;
}

}  // namespace

bool check_schema(const Database& database, Inspector& inspector, Findings& findings) {
  std::string missing;
  std::size_t count = 0;
  for (const std::string& table : all_tables(*database.storage)) {
    ++count;
    try {
      (void)inspector.select("select 1 from " + table + " where 1 = 0");
    } catch (const Error&) {
      missing += (missing.empty() ? "" : ", ") + table;
    }
  }
  if (missing.empty()) {
    findings.ok("tables", "all " + std::to_string(count) + " are there");
    return true;
  }
  findings.bad("tables", "these are missing, or may not be read: " + missing,
               "grant this user the rights, or restore them from a backup");
  return false;
}

void check_clock(Inspector& inspector, Findings& findings) {
  const TimePoint before = Clock::system().now();
  const std::int64_t theirs = inspector.number("select " + inspector.now_micros());
  const TimePoint after = Clock::system().now();
  const Duration trip = after - before;
  const Duration skew = TimePoint{Duration{theirs}} - (before + trip / 2);
  const Duration size = skew < 0s ? -skew : skew;
  const std::string text = "the database's clock is " +
                           text_of(std::chrono::duration_cast<std::chrono::milliseconds>(size)) +
                           (skew < 0s ? " behind ours" : " ahead of ours");
  if (size > 1s + trip / 2) {
    findings.bad("clock", text + ": delayed events come at the wrong time",
                 "let chrony or systemd-timesyncd set both");
  } else {
    findings.ok("clock", text);
  }
}

void add_doctor_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<AdminOptions>();
  CLI::App& command =
      *app.add_subcommand("doctor", "Look for what is not as it should be, and say what mends it");
  add_admin_options(command, *options);
  when_chosen(command, chosen, options, run_doctor);
}

}  // namespace postrider::cli
