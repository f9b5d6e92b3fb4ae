// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "backends/sqlite/entry_store.hpp"
#include "backends/sqlite/node_locks.hpp"
#include "backends/sqlite/outbox_store.hpp"
#include "backends/sqlite/queue_store.hpp"
#include "backends/sqlite/stream_store.hpp"
#include "backends/sqlite/wake_channel.hpp"
#include "backends/sqlite/writer.hpp"
#include "postrider/storage.hpp"
#include "storage/embedded_migration.hpp"
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

namespace postrider::sqlite {

/// Compiled in from migrations/.
[[nodiscard]] std::span<const EmbeddedMigration> embedded_migrations();

/// One file in WAL mode: one writer, and readers beside it that see the last committed state.
class SqliteStorage final : public Storage {
 public:
  /// Opens the file, creating it when it is missing.
  SqliteStorage(std::string_view url, const StorageOptions& options);

  Transaction begin() override;
  MigrationReport migrate(const MigrateOptions& options) override;
  [[nodiscard]] BackendKind kind() const noexcept override { return BackendKind::sqlite; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] PoolStats pool_stats() const override;
  void ping() override;
  [[nodiscard]] OutboxStore& outbox_store() override { return outbox_; }
  [[nodiscard]] OutboxAdminStore& outbox_admin_store() override { return admin_; }
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
  [[nodiscard]] ConnectionOptions connection_options(bool read_only) const;
  [[nodiscard]] SqlDialect dialect();

  const StorageOptions options_;
  const std::string name_;
  const std::string path_;
  Clock& clock_;
  Writer writer_;
  ConnectionPool readers_;
  SqliteOutboxStore outbox_;
  SqlOutboxAdminStore admin_;
  SqlOutboxSearchStore outbox_search_;
  SqlOutboxPendingStore outbox_pending_;
  SqlAuditStore audit_;
  SqlQueueAdminStore queue_admin_;
  SqlLogStore log_;
  SqlProjectionStore projections_;
  SqlProgressStore progress_;
  SqlLeaseStore leases_;
  SqlRelayAdminStore relay_admin_;
  SqliteNodeLocks node_locks_;
  SqliteWakeChannel wake_;
  SqliteEntryStore entries_;
  SqliteQueueStore queue_;
  SqliteStreamStore stream_;
};

}  // namespace postrider::sqlite
