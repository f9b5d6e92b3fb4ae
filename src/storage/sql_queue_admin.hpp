// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/queue_admin_store.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// QueueAdminStore for all three databases: rare verbs, plain SQL, so once is enough.
class SqlQueueAdminStore final : public QueueAdminStore {
 public:
  explicit SqlQueueAdminStore(SqlDialect dialect);

  QueueCounts counts() override;
  LogCounts log_counts() override;
  std::map<std::int32_t, std::int64_t> attempts() override;
  std::vector<QueueRecord> list(const QueueFilter& filter, std::size_t limit, QueueId after) override;
  AdminBatch apply(QueueAction action, const QueueFilter& filter, QueueId after, std::size_t limit,
                   std::string_view reason) override;
  std::int64_t count(QueueAction action, const QueueFilter& filter) override;
  AdminBatch replay(const QueueFilter& filter, LogSeq after, LogSeq until, std::size_t limit) override;
  std::int64_t purge_log(Duration age, bool keep_unread, std::size_t limit) override;

 private:
  SqlDialect dialect_;
};

}  // namespace postrider
