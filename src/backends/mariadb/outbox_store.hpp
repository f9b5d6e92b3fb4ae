// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/mariadb/outbox_sql.hpp"
#include "backends/mariadb/work.hpp"
#include "postrider/clock.hpp"
#include "postrider/identifier.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::mariadb {

/// Work that is a transaction of its own is done again after deadlocks and after a broken connection was
/// found; `insert` belongs to the caller's transaction and is not.
class MariadbOutboxStore final : public OutboxStore {
 public:
  /// `clock` may be null: then the database's counts.
  MariadbOutboxStore(const Work& work, const Identifier& schema, Clock* clock, std::string name);

  void insert(Tx& tx, std::string_view owner, std::span<const NewOutboxRow> rows) override;
  std::vector<ClaimedEvent> claim(const ClaimRequest& request) override;
  std::vector<EventId> renew(std::span<const LeaseRef> held, Duration lease) override;
  std::size_t complete(std::span<const Completion> results) override;
  std::vector<EventId> predecessors(std::string_view key, const EventId& id, std::size_t limit) override;
  void check_schema() override;

 private:
  struct Wave;
  [[nodiscard]] static std::vector<Wave> waves_of(std::span<const Completion> results, const Value& now);
  std::uint64_t write(Link& link, const Wave& wave) const;
  /// Lines about those that failed and are still held; before their rows are changed.
  void log_attempts(Link& link, const Wave& wave) const;
  /// NULL unless the storage has a clock of its own.
  [[nodiscard]] Value now_or_null() const;

  const Work& work_;
  Identifier schema_;
  Clock* clock_;
  std::string name_;
  OutboxSql sql_;
};

}  // namespace postrider::mariadb
