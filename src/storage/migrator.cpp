// SPDX-License-Identifier: Apache-2.0
#include "storage/migrator.hpp"

#include <algorithm>
#include <string>

#include "core/failpoint.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr std::string_view newline_and_blank = " \t\r\n";

bool knows(std::span<const EmbeddedMigration> known, int version) {
  return std::any_of(known.begin(), known.end(),
                     [&](const EmbeddedMigration& m) { return m.version == version; });
}

/// `applied` must be a prefix of `known`.
void check_applied(std::span<const EmbeddedMigration> known, std::span<const int> applied,
                   std::string_view what) {
  for (std::size_t i = 0; i < applied.size(); ++i) {
    if (!knows(known, applied[i])) {
      throw Error(ErrorCode::schema, what,
                  "the database has schema version " + std::to_string(applied[i]) +
                      ", this library knows versions up to " +
                      std::to_string(known.empty() ? 0 : known.back().version),
                  "upgrade postrider in this program");
    }
    if (known[i].version != applied[i]) {
      throw Error(ErrorCode::schema, what,
                  "schema version " + std::to_string(known[i].version) + " is missing although version " +
                      std::to_string(applied[i]) + " is recorded as applied",
                  "restore the schema_migrations table from a backup");
    }
  }
}

MigrationStep make_step(const EmbeddedMigration& migration, bool up, const Identifier& schema) {
  return {.version = migration.version,
          .name = std::string(migration.name),
          .up = up,
          .sql = fill_schema(up ? migration.up : migration.down, schema)};
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(newline_and_blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(newline_and_blank) - first + 1);
}

bool is_comment(std::string_view line) {
  return trimmed(line).starts_with("--");
}

bool only_comments(std::string_view statement) {
  while (!statement.empty()) {
    const std::size_t end = std::min(statement.find('\n'), statement.size());
    const std::string_view line = statement.substr(0, end);
    if (!trimmed(line).empty() && !is_comment(line)) return false;
    statement.remove_prefix(std::min(end + 1, statement.size()));
  }
  return true;
}

}  // namespace

MigrationReport plan_migrations(std::span<const EmbeddedMigration> known, std::span<const int> applied,
                                const Identifier& schema, const MigrateOptions& options) {
  check_applied(known, applied, "cannot migrate");
  MigrationReport report;
  report.from = applied.empty() ? 0 : applied.back();
  report.to = options.target.value_or(known.empty() ? 0 : known.back().version);
  if (report.to != 0 && !knows(known, report.to)) {
    std::string all = "0";
    for (const EmbeddedMigration& migration : known) all += ", " + std::to_string(migration.version);
    throw Error(ErrorCode::invalid_argument, "cannot migrate to version " + std::to_string(report.to),
                "there is no such version", "there are " + all);
  }
  for (const EmbeddedMigration& migration : known) {
    if (migration.version > report.from && migration.version <= report.to) {
      report.steps.push_back(make_step(migration, true, schema));
    }
  }
  for (auto it = known.rbegin(); it != known.rend(); ++it) {
    if (it->version <= report.from && it->version > report.to)
      report.steps.push_back(make_step(*it, false, schema));
  }
  return report;
}

MigrationReport run_migrations(MigrationTarget& target, std::span<const EmbeddedMigration> known,
                               const Identifier& schema, const MigrateOptions& options) {
  if (!options.dry_run) target.lock();
  MigrationReport report = plan_migrations(known, target.applied(), schema, options);
  if (options.dry_run) return report;
  std::vector<MigrationStep> done;
  for (MigrationStep& step : report.steps) {
    failpoint("migrate.step.before");
    if (target.apply(step)) done.push_back(std::move(step));
    failpoint("migrate.step.after");
  }
  report.steps = std::move(done);
  return report;
}

bool names_our_table(std::string_view text) noexcept {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (const std::string_view table :
       {"outbox_event", "outbox_attempt", "event_queue", "event_log", "event_attempt", "event_handler_state",
        "event_projection", "event_projection_skipped", "outbox_topic_progress", "outbox_lease",
        "outbox_dead_letter", "event_log_entries", "event_log_words", "events", "event_tags",
        "event_store_lock", "schema_migrations"}) {
    for (std::size_t at = text.find(table); at != std::string_view::npos; at = text.find(table, at + 1)) {
      const std::size_t end = at + table.size();
      const bool whole = end == text.size() || !is_word(text[end]);
      if (whole && at > 0 && (text[at - 1] == '_' || text[at - 1] == '.')) return true;
    }
  }
  return false;
}

void require_current_schema(std::span<const EmbeddedMigration> known, std::span<const int> applied,
                            std::string_view storage_name) {
  const std::string what = "cannot use " + std::string(storage_name);
  check_applied(known, applied, what);
  if (applied.size() == known.size()) return;
  const std::string why = applied.empty()
                              ? std::string("postrider's tables are missing")
                              : "its schema has version " + std::to_string(applied.back()) + ", version " +
                                    std::to_string(known.back().version) + " is needed";
  throw Error(ErrorCode::schema, what, why, migrate_hint);
}

std::vector<std::string> split_statements(std::string_view sql) {
  std::vector<std::string> statements;
  std::string current;
  const auto finish = [&] {
    if (!only_comments(current)) statements.emplace_back(trimmed(current));
    current.clear();
  };
  bool in_body = false;
  while (!sql.empty()) {
    const std::size_t end = std::min(sql.find('\n'), sql.size());
    const std::string_view line = sql.substr(0, end);
    const std::string_view text = trimmed(line);
    if (line.starts_with("BEGIN") && text == "BEGIN") in_body = true;
    if (line.starts_with("END;") && text == "END;") in_body = false;
    if (!in_body && text.ends_with(';') && !is_comment(line)) {
      // The text without its last semicolon, indentation kept.
      const std::size_t semicolon = line.rfind(';');
      current.append(line.substr(0, semicolon));
      finish();
    } else {
      current.append(line);
      current += '\n';
    }
    sql.remove_prefix(std::min(end + 1, sql.size()));
  }
  finish();
  return statements;
}

std::string fill_schema(std::string_view sql, const Identifier& schema) {
  constexpr std::string_view mark = "{schema}";
  std::string filled;
  filled.reserve(sql.size() + 64);
  for (;;) {
    const std::size_t at = sql.find(mark);
    filled.append(sql.substr(0, at));
    if (at == std::string_view::npos) return filled;
    filled += schema.str();
    sql.remove_prefix(at + mark.size());
  }
}

}  // namespace postrider
