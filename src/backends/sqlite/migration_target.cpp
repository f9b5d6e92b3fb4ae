// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/migration_target.hpp"

#include <algorithm>

#include "core/failpoint.hpp"

namespace postrider::sqlite {

std::vector<int> SqliteMigrationTarget::applied() {
  std::vector<int> versions;
  {
    Statement exists = connection_.prepare("select 1 from sqlite_master where type = 'table' and name = ?");
    exists.with(table_);
    if (!exists.step()) return versions;
  }
  Statement select = connection_.prepare("select version from " + table_ + " order by version");
  while (select.step()) versions.push_back(static_cast<int>(select.integer(0)));
  return versions;
}

bool SqliteMigrationTarget::apply(const MigrationStep& step) {
  if (!connection_.in_transaction()) {
    // From the second step on another program may have come between.
    connection_.begin();
    const std::vector<int> now = applied();
    const bool there = std::find(now.begin(), now.end(), step.version) != now.end();
    if (there == step.up) {
      connection_.rollback();
      return false;
    }
  }
  for (const std::string& statement : split_statements(step.sql)) connection_.run(statement);
  connection_.run("create table if not exists " + table_ +
                  " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)");
  if (step.up) {
    connection_.prepare("insert into " + table_ + " (version, name, applied_at) values (?, ?, ?)")
        .with(step.version, step.name, clock_.now().time_since_epoch().count())
        .run();
  } else {
    connection_.prepare("delete from " + table_ + " where version = ?").with(step.version).run();
  }
  failpoint("sqlite.migrate.before_commit");
  connection_.commit();
  return true;
}

}  // namespace postrider::sqlite
