// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "backends/mariadb/entry_store.hpp"
#include "backends/mariadb/node_locks.hpp"
#include "backends/mariadb/outbox_store.hpp"
#include "backends/mariadb/queue_store.hpp"
#include "backends/mariadb/stream_store.hpp"
#include "backends/mariadb/url.hpp"
#include "backends/mariadb/work.hpp"
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

namespace postrider::mariadb {

class MariadbStorage final : public Storage {
 public:
  /// Connects when first used: a server that is away now may be back by then.
  MariadbStorage(ConnectSettings settings, const StorageOptions& options);

  [[nodiscard]] Transaction begin() override;
  MigrationReport migrate(const MigrateOptions& options) override;
  [[nodiscard]] BackendKind kind() const noexcept override { return BackendKind::mariadb; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] PoolStats pool_stats() const override { return pool_.stats(); }
  void ping() override;
  [[nodiscard]] OutboxStore& outbox_store() override { return outbox_; }
  [[nodiscard]] OutboxAdminStore& outbox_admin_store() override { return admin_; }
  [[nodiscard]] OutboxSearchStore& outbox_search_store() override { return outbox_search_; }
  [[nodiscard]] OutboxPendingStore& outbox_pending_store() override { return outbox_pending_; }
  [[nodiscard]] QueueAdminStore& queue_admin_store() override { return queue_admin_; }
  [[nodiscard]] LogStore& log_store() override { return log_; }
  [[nodiscard]] QueueStore& queue_store() override { return queue_; }
  [[nodiscard]] StreamStore& stream_store() override { return stream_; }
  [[nodiscard]] AuditStore& audit_store() override { return audit_; }
  [[nodiscard]] ProjectionStore& projection_store() override { return projections_; }
  [[nodiscard]] EntryStore& entry_store() override { return entries_; }
  [[nodiscard]] ProgressStore& progress_store() override { return progress_; }
  [[nodiscard]] LeaseStore& lease_store() override { return leases_; }
  [[nodiscard]] RelayAdminStore& relay_admin_store() override { return relay_admin_; }
  [[nodiscard]] NodeLocks* node_locks() noexcept override { return &node_locks_; }

 private:
  [[nodiscard]] SqlDialect dialect();

  ConnectSettings settings_;
  Identifier schema_;
  Clock* clock_;
  std::string name_;
  ConnectionPool pool_;
  Work work_;
  MariadbOutboxStore outbox_;
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
  MariadbNodeLocks node_locks_;
  MariadbEntryStore entries_;
  MariadbQueueStore queue_;
  MariadbStreamStore stream_;
};

}  // namespace postrider::mariadb
