// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/lease_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

inline constexpr std::string_view lease_table = "outbox_lease";

/// LeaseStore for all three databases.
class SqlLeaseStore final : public LeaseStore {
 public:
  explicit SqlLeaseStore(SqlDialect dialect);

  std::optional<Epoch> acquire(std::string_view name, std::string_view owner, Duration lease, bool locked,
                               std::span<const std::string> dead) override;
  bool renew(const LeaseFence& fence, Duration lease, bool locked) override;
  bool release(const LeaseFence& fence) override;
  void announce(std::string_view name, Duration lease) override;
  void withdraw(std::string_view name) override;
  std::vector<LeaseRow> list() override;
  std::size_t forget(std::string_view prefix, Duration over_for) override;

 private:
  SqlDialect dialect_;
};

}  // namespace postrider
