// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/migration_target.hpp"

#include <array>

#include "core/failpoint.hpp"
#include "postrider/error.hpp"

namespace postrider::mariadb {
namespace {

constexpr int lock_seconds = 60;

std::string versions_table(const Identifier& schema) {
  return schema.str() + "_schema_migrations";
}

}  // namespace

std::vector<int> applied_versions(Link& link, const Identifier& schema) {
  std::vector<int> versions;
  try {
    link.run("SELECT version FROM " + versions_table(schema) + " ORDER BY version", {},
             [&](const RowView& row) { versions.push_back(static_cast<int>(row.integer(0))); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::schema) throw;  // no table: nothing was ever applied
  }
  return versions;
}

void MariadbMigrationTarget::lock() {
  // Named after database and prefix; hashed, because a name has at most 64 characters.
  const std::array<Value, 2> params{Value(schema_.str()), Value(lock_seconds)};
  bool locked = false;
  link_.run("SELECT GET_LOCK(CONCAT('postrider.migrate.', SHA1(CONCAT(DATABASE(), '.', ?))), ?)", params,
            [&](const RowView& row) { locked = row.text(0) == "1"; });
  if (!locked) {
    throw Error(ErrorCode::timeout, {.retryable = true}, "cannot migrate " + link_.name(),
                "another migration has been running for " + std::to_string(lock_seconds) + " seconds",
                "wait for it, or look for it in SHOW PROCESSLIST");
  }
}

bool MariadbMigrationTarget::apply(const MigrationStep& step) {
  // DDL commits by itself. Every statement can be repeated, the record comes last: a run that was killed
  // anywhere is simply run again.
  link_.command(("CREATE TABLE IF NOT EXISTS " + versions_table(schema_) +
                 " (version INT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL,"
                 " applied_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))) ENGINE=InnoDB")
                    .c_str());
  for (const std::string& statement : split_statements(step.sql)) {
    failpoint("mariadb.migrate.between");
    link_.command(statement.c_str());
  }
  failpoint("mariadb.migrate.between");
  const Value version(step.version);
  if (step.up) {
    const std::array<Value, 2> params{version, Value(step.name)};
    link_.run("INSERT IGNORE INTO " + versions_table(schema_) + " (version, name) VALUES (?, ?)", params, {});
  } else {
    link_.run("DELETE FROM " + versions_table(schema_) + " WHERE version = ?", {&version, 1}, {});
  }
  return true;
}

}  // namespace postrider::mariadb
