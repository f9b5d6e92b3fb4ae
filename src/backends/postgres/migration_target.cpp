// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/migration_target.hpp"

#include <algorithm>
#include <array>

namespace postrider::postgres {

namespace {

constexpr std::string_view cannot_migrate = "cannot migrate";
/// Marks a schema that we made, so that undoing everything takes away no schema of somebody else.
constexpr std::string_view ours = "created by postrider";

}  // namespace

PostgresMigrationTarget::PostgresMigrationTarget(Connection& connection, const Identifier& schema)
    : connection_(connection), schema_(schema.str()), table_(schema.str() + ".schema_migrations") {}

PostgresMigrationTarget::~PostgresMigrationTarget() {
  patience_.reset();
  connection_.rollback();
}

Rows PostgresMigrationTarget::execute(const std::string& sql, std::span<const Value> params) {
  Pipeline pipeline(connection_, cannot_migrate);
  pipeline.send_text(sql, params);
  return to_rows(pipeline.finish().at(0));
}

void PostgresMigrationTarget::execute_script(const std::string& sql) {
  const Result result(PQexec(connection_.native(), sql.c_str()));
  if (result.status() == PGRES_COMMAND_OK || result.status() == PGRES_TUPLES_OK) return;
  throw make_error(cannot_migrate, failure_of(result.get(), connection_.native()));
}

void PostgresMigrationTarget::refuse_reserved_word() {
  const std::array<Value, 1> params{Value(schema_)};
  const Rows found =
      execute("SELECT 1 FROM pg_catalog.pg_get_keywords() WHERE word = $1 AND catcode IN ('R', 'T')", params);
  if (found.empty()) return;
  throw Error(ErrorCode::invalid_argument, cannot_migrate,
              "'" + schema_ + "' is a word of SQL, which cannot name a schema",
              "choose another name, for example " + schema_ + "_events");
}

void PostgresMigrationTarget::lock() {
  // A server that is silent is found out by this. What follows takes as long as it takes: others may be
  // migrating, and to build an index may take hours.
  refuse_reserved_word();
  patience_.emplace(connection_, Duration::zero());
  execute_script("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '60s'");
  try {
    const std::string name = "postrider migrations of " + schema_;
    const std::array<Value, 1> params{Value(name)};
    (void)execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", params);
  } catch (const Error& error) {
    if (error.sqlstate() != "55P03") throw;
    throw Error(ErrorCode::timeout, {.sqlstate = error.sqlstate(), .retryable = true}, cannot_migrate,
                "another program has been migrating schema " + schema_ + " for more than 60 seconds",
                "wait for it, or end it");
  }
}

std::vector<int> PostgresMigrationTarget::applied() {
  std::vector<int> versions;
  const std::array<Value, 1> params{Value(schema_)};
  // Not to_regclass, nor to_regnamespace below: they answer from a cache that does not learn what others have
  // committed while this transaction waited for the lock. Reading the catalog's tables does.
  const Rows found = execute(
      "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
      "WHERE n.nspname = $1 AND c.relname = 'schema_migrations'",
      params);
  if (found.empty()) return versions;
  const Rows rows = execute("SELECT version FROM " + table_ + " ORDER BY version");
  for (std::size_t i = 0; i < rows.size(); ++i) versions.push_back(static_cast<int>(rows.integer(i, 0)));
  return versions;
}

bool PostgresMigrationTarget::apply(const MigrationStep& step) {
  if (connection_.transaction_status() == PQTRANS_IDLE) lock();
  const std::vector<int> versions = applied();
  if ((std::find(versions.begin(), versions.end(), step.version) != versions.end()) == step.up) return false;

  const std::array<Value, 1> schema_name{Value(schema_)};
  if (step.up) {
    // Asked first, because CREATE SCHEMA IF NOT EXISTS needs the right to create one even when it is there.
    if (execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1", schema_name).empty()) {
      execute_script("CREATE SCHEMA " + schema_ + "; COMMENT ON SCHEMA " + schema_ + " IS '" +
                     std::string(ours) + "'");
    }
    execute_script(
        "CREATE TABLE IF NOT EXISTS " + table_ +
        " (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT "
        "clock_timestamp())");
  }
  execute_script(step.sql);
  if (step.up) {
    const std::array<Value, 2> record{Value(step.version), Value(step.name)};
    (void)execute("INSERT INTO " + table_ + " (version, name) VALUES ($1, $2)", record);
  } else {
    const std::array<Value, 1> record{Value(step.version)};
    (void)execute("DELETE FROM " + table_ + " WHERE version = $1", record);
    if (applied().empty()) {
      execute_script("DROP TABLE " + table_);
      const std::array<Value, 2> questions{Value(schema_), Value(ours)};
      const Rows empty_and_ours = execute(
          "SELECT 1 FROM pg_namespace n WHERE n.nspname = $1 AND obj_description(n.oid, 'pg_namespace') = $2 "
          "AND NOT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = n.oid) "
          "AND NOT EXISTS (SELECT 1 FROM pg_proc WHERE pronamespace = n.oid) "
          "AND NOT EXISTS (SELECT 1 FROM pg_type WHERE typnamespace = n.oid)",
          questions);
      if (!empty_and_ours.empty()) execute_script("DROP SCHEMA " + schema_);
    }
  }
  Pipeline pipeline(connection_, cannot_migrate);
  pipeline.send_commit(false);
  (void)pipeline.finish();
  return true;
}

}  // namespace postrider::postgres
