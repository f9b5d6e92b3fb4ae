// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/outbox_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// OutboxAdminStore for all three databases: rare verbs, plain SQL, so once is enough.
class SqlOutboxAdminStore final : public OutboxAdminStore {
 public:
  explicit SqlOutboxAdminStore(SqlDialect dialect);

  OutboxCounts counts() override;
  std::optional<OutboxRecord> find(const EventId& id) override;
  std::vector<OutboxRecord> list_dead(const DeadLetterFilter& filter, std::size_t limit,
                                      const OutboxRecord* after) override;
  std::int64_t count_dead(const DeadLetterFilter& filter) override;
  using OutboxAdminStore::revive_dead;
  std::int64_t revive_dead(const DeadLetterFilter& filter, std::size_t limit, Duration delay) override;
  bool edit_dead(const EventId& id, PayloadKind kind, std::string_view payload,
                 std::optional<std::string_view> headers_json) override;
  std::int64_t purge_batch(EventStatus status, Duration age, std::size_t limit) override;
  std::int64_t count_purgeable(EventStatus status, Duration age) override;

 private:
  [[nodiscard]] std::string last_error();
  std::int64_t purge_by_id(EventStatus status, Duration age, std::size_t limit);

  SqlDialect dialect_;
};

}  // namespace postrider
