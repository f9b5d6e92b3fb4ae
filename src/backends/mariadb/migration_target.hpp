// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/mariadb/link.hpp"
#include "postrider/identifier.hpp"
#include "storage/embedded_migration.hpp"
#include "storage/migrator.hpp"

namespace postrider::mariadb {

/// Made by the build from migrations/*.sql.
[[nodiscard]] std::span<const EmbeddedMigration> embedded_migrations();

/// The recorded versions, ascending; none when there is no such table.
[[nodiscard]] std::vector<int> applied_versions(Link& link, const Identifier& schema);

/// One run of the migrator. The lock is the connection's: it goes when the connection does, however the
/// process ends.
class MariadbMigrationTarget final : public MigrationTarget {
 public:
  MariadbMigrationTarget(Link& link, const Identifier& schema) : link_(link), schema_(schema) {}

  void lock() override;
  std::vector<int> applied() override { return applied_versions(link_, schema_); }
  bool apply(const MigrationStep& step) override;

 private:
  Link& link_;
  Identifier schema_;
};

}  // namespace postrider::mariadb
