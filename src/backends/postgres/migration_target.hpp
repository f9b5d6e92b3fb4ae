// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/postgres/connection.hpp"
#include "storage/migrator.hpp"

namespace postrider::postgres {

/// Made by the build from migrations/*.sql.
[[nodiscard]] std::span<const EmbeddedMigration> embedded_migrations();

/// Each step is one transaction with DDL, bookkeeping and an advisory lock that lives as long as that
/// transaction, so that poolers cannot lose it. Between two steps another run may get in; `apply` then finds
/// its step done and leaves it.
class PostgresMigrationTarget final : public MigrationTarget {
 public:
  PostgresMigrationTarget(Connection& connection, const Identifier& schema);
  ~PostgresMigrationTarget() override;

  void lock() override;
  std::vector<int> applied() override;
  bool apply(const MigrationStep& step) override;

 private:
  /// Told here, because as a schema's name it is a syntax error in whatever statement comes first.
  void refuse_reserved_word();
  Rows execute(const std::string& sql, std::span<const Value> params = {});
  /// Several statements at once, without parameters.
  void execute_script(const std::string& sql);

  Connection& connection_;
  std::string schema_;
  std::string table_;
  std::optional<Patience> patience_;  // none while it has the lock
};

}  // namespace postrider::postgres
