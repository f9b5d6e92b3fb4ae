// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/sqlite/connection.hpp"
#include "postrider/clock.hpp"
#include "storage/migrator.hpp"

namespace postrider::sqlite {

/// Each step is one transaction together with its record, so a killed run leaves whole steps only.
class SqliteMigrationTarget final : public MigrationTarget {
 public:
  SqliteMigrationTarget(Connection& connection, const Identifier& schema, Clock& clock)
      : connection_(connection), table_(schema.str() + "_schema_migrations"), clock_(clock) {}
  ~SqliteMigrationTarget() override { connection_.rollback(); }

  /// The file's write lock, so that the plan is made on what the first step will find.
  void lock() override { connection_.begin(); }
  std::vector<int> applied() override;
  bool apply(const MigrationStep& step) override;

 private:
  Connection& connection_;
  const std::string table_;
  Clock& clock_;
};

}  // namespace postrider::sqlite
