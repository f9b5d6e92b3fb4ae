// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/audit_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// AuditStore for all three databases.
class SqlAuditStore final : public AuditStore {
 public:
  explicit SqlAuditStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

  void append(std::span<const AuditEntry> entries) override;
  bool extend(std::string_view who, std::string_view what, std::string_view more) override;
  std::vector<AuditEntry> list(const AuditQuery& query) override;

 private:
  SqlDialect dialect_;
};

}  // namespace postrider
