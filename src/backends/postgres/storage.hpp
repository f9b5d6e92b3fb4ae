// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/entry_store.hpp"
#include "backends/postgres/node_locks.hpp"
#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/queue_store.hpp"
#include "backends/postgres/stream_store.hpp"
#include "backends/postgres/wake_channel.hpp"
#include "postrider/storage.hpp"
#include "storage/pool.hpp"
#include "storage/sql_audit_store.hpp"
#include "storage/sql_lease_store.hpp"
#include "storage/sql_log_store.hpp"
#include "storage/sql_outbox_admin.hpp"
#include "storage/sql_outbox_pending.hpp"
#include "storage/sql_outbox_search.hpp"
#include "storage/sql_progress_store.hpp"
#include "storage/sql_projection_store.hpp"
#include "storage/sql_queue_admin.hpp"
#include "storage/sql_relay_admin.hpp"

namespace postrider::postgres {

/// `postgresql://user@host:port/database`, without the password and without whatever else the URL has. Throws
/// Error(invalid_argument) when libpq cannot read the URL; the message does not repeat it.
[[nodiscard]] std::string redacted(std::string_view url);

class PostgresStorage final : public Storage {
 public:
  PostgresStorage(std::string_view url, const StorageOptions& options);

  [[nodiscard]] Transaction begin() override;
  MigrationReport migrate(const MigrateOptions& options = {}) override;
  [[nodiscard]] BackendKind kind() const noexcept override { return BackendKind::postgres; }
  [[nodiscard]] const std::string& name() const noexcept override { return context_.name; }
  [[nodiscard]] PoolStats pool_stats() const override { return pool_.stats(); }
  void ping() override;
  [[nodiscard]] OutboxStore& outbox_store() override { return outbox_; }
  [[nodiscard]] OutboxAdminStore& outbox_admin_store() override { return outbox_admin_; }
  [[nodiscard]] OutboxSearchStore& outbox_search_store() override { return outbox_search_; }
  [[nodiscard]] OutboxPendingStore& outbox_pending_store() override { return outbox_pending_; }
  [[nodiscard]] QueueAdminStore& queue_admin_store() override { return queue_admin_; }
  [[nodiscard]] LogStore& log_store() override { return log_; }
  [[nodiscard]] ProjectionStore& projection_store() override { return projections_; }
  [[nodiscard]] EntryStore& entry_store() override { return entries_; }
  [[nodiscard]] ProgressStore& progress_store() override { return progress_; }
  [[nodiscard]] LeaseStore& lease_store() override { return leases_; }
  [[nodiscard]] RelayAdminStore& relay_admin_store() override { return relay_admin_; }
  [[nodiscard]] NodeLocks* node_locks() noexcept override { return &node_locks_; }
  [[nodiscard]] QueueStore& queue_store() override { return queue_; }
  [[nodiscard]] StreamStore& stream_store() override { return stream_; }
  [[nodiscard]] AuditStore& audit_store() override { return audit_; }
  [[nodiscard]] WakeChannel* wake_channel() noexcept override { return &wake_; }

 private:
  /// A connection that the server has not closed meanwhile.
  [[nodiscard]] ConnectionPool::Lease acquire();
  void with_connection(const std::function<void(Connection&)>& work);
  void check_schema();
  [[nodiscard]] SqlDialect dialect(Clock* clock);
  [[nodiscard]] Rows run_alone(std::string_view sql, std::span<const Value> params);
  [[nodiscard]] Rows run_often(std::string_view sql, std::span<const Value> params);

  Identifier schema_;
  ConnectionContext context_;  // before the pool: its connections refer to it
  ConnectionPool pool_;
  PostgresOutboxStore outbox_;
  SqlOutboxAdminStore outbox_admin_;
  SqlOutboxSearchStore outbox_search_;
  SqlOutboxPendingStore outbox_pending_;
  SqlAuditStore audit_;
  SqlQueueAdminStore queue_admin_;
  SqlLogStore log_;
  SqlProjectionStore projections_;
  SqlProgressStore progress_;
  SqlLeaseStore leases_;
  SqlRelayAdminStore relay_admin_;
  PostgresNodeLocks node_locks_;
  PostgresEntryStore entries_;
  PostgresQueueStore queue_;
  PostgresStreamStore stream_;
  PostgresWakeChannel wake_;
};

}  // namespace postrider::postgres
