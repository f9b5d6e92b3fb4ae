// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/queue_admin_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// QueueAdminStore for all three databases: rare verbs, plain SQL, so once is enough.
class SqlQueueAdminStore final : public QueueAdminStore {
 public:
  explicit SqlQueueAdminStore(SqlDialect dialect);

  QueueCounts counts(const QueueFilter& filter) override;
  LogCounts log_counts(const QueueFilter& log_filter) override;
  std::map<std::int32_t, std::int64_t> attempts(const QueueFilter& filter) override;
  std::vector<QueueRecord> list(const QueueFilter& filter, std::size_t limit, QueueId after) override;
  AdminBatch apply(QueueAction action, const QueueFilter& filter, QueueId after, std::size_t limit,
                   std::string_view reason) override;
  std::int64_t count(QueueAction action, const QueueFilter& filter) override;
  AdminBatch replay(const QueueFilter& filter, LogSeq after, LogSeq until, std::size_t limit) override;
  LogPurgeBatch purge_log(const LogPurge& what, LogSeq after, std::size_t limit) override;

 private:
  AdminBatch apply_once(QueueAction action, const QueueFilter& filter, QueueId after, std::size_t limit,
                        std::string_view reason);
  /// Whether the first entry behind `after` that matches is old enough to be purged; false when there is
  /// none.
  [[nodiscard]] bool first_is_old(const LogPurge& what, std::int64_t after);
  [[nodiscard]] std::int64_t count_purgeable(const LogPurge& what, std::int64_t until);
  /// Those with a number in (after, until] that match the filter, and their attempts.
  std::int64_t delete_entries(const LogPurge& what, std::int64_t after, std::int64_t until);

  SqlDialect dialect_;
};

}  // namespace postrider
