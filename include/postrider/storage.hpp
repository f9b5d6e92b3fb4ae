// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"
#include "postrider/detail/signal.hpp"
#include "postrider/identifier.hpp"
#include "postrider/log.hpp"
#include "postrider/migration.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

class OutboxStore;
class OutboxAdminStore;
class OutboxSearchStore;
class OutboxPendingStore;
class QueueStore;
class QueueAdminStore;
class LogStore;
class ProjectionStore;
class EntryStore;
class ProgressStore;
class LeaseStore;
class RelayAdminStore;
class NodeLocks;
class StreamStore;
class WakeChannel;
class AuditStore;

struct StorageOptions {
  /// Connections at most (1 to 1000). SQLite: readers; it has one writer in any case.
  std::size_t pool_size = 16;
  /// How long to wait for a free connection before Error(timeout).
  Duration acquire_timeout = std::chrono::seconds{10};
  /// How long one attempt to connect may take.
  Duration connect_timeout = std::chrono::seconds{5};
  /// PostgreSQL, MariaDB: how long the server may be silent while an answer is due. Then the connection is
  /// given up: Error(unavailable), in doubt after a COMMIT. Zero: for ever. Longer than the longest statement
  /// of your own transactions; migrations and waiting for other nodes' signals have no such limit. MariaDB
  /// counts whole seconds.
  Duration io_timeout = std::chrono::seconds{30};
  /// Where the tables live: a schema on PostgreSQL, a table prefix (with `_` behind it) elsewhere.
  Identifier schema = "postrider";
  /// SQLite only. false: `synchronous=NORMAL`, faster, but a power cut may lose the last committed
  /// transactions (a crash of the process does not).
  bool sqlite_full_sync = true;
  /// SQLite only: how long to wait for another process's write lock.
  Duration sqlite_busy_timeout = std::chrono::seconds{10};
  /// For tests: take all times from here instead of from the database's clock. Must outlive the storage.
  Clock* clock = nullptr;
  /// For tests: what the event store's index makes of its keys instead of XXH64, to force collisions. The
  /// same for the whole life of a database.
  std::uint64_t (*stream_hash)(std::string_view) = nullptr;
  LogCallback log = log_to_stderr();
};

struct PoolStats {
  std::size_t open = 0;
  std::size_t limit = 0;  ///< no more are ever open
  std::size_t in_use = 0;
  std::size_t waiting = 0;
  std::string trouble{};  ///< why the last attempt to connect failed; empty since one succeeded
};

/// A database. Thread-safe. Must outlive everything that works on it.
class Storage {
 public:
  virtual ~Storage() = default;

  /// Begins a transaction on a connection of the pool; the connection goes back when the transaction ends.
  [[nodiscard]] virtual Transaction begin() = 0;

  /// Creates or changes the tables. Safe to run from many processes at once, and again after it was killed.
  /// Throws Error(schema) when the database is newer than this library.
  virtual MigrationReport migrate(const MigrateOptions& options = {}) = 0;

  [[nodiscard]] virtual BackendKind kind() const noexcept = 0;
  /// The URL without its password, for messages.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual PoolStats pool_stats() const = 0;
  /// One round trip; throws what a broken connection throws.
  virtual void ping() = 0;

  /// The ports behind the engines; see src/storage.
  [[nodiscard]] virtual OutboxStore& outbox_store() = 0;
  [[nodiscard]] virtual OutboxAdminStore& outbox_admin_store() = 0;
  [[nodiscard]] virtual OutboxSearchStore& outbox_search_store() = 0;
  [[nodiscard]] virtual OutboxPendingStore& outbox_pending_store() = 0;
  [[nodiscard]] virtual QueueStore& queue_store() = 0;
  [[nodiscard]] virtual QueueAdminStore& queue_admin_store() = 0;
  [[nodiscard]] virtual LogStore& log_store() = 0;
  [[nodiscard]] virtual ProjectionStore& projection_store() = 0;
  [[nodiscard]] virtual EntryStore& entry_store() = 0;
  [[nodiscard]] virtual ProgressStore& progress_store() = 0;
  [[nodiscard]] virtual LeaseStore& lease_store() = 0;
  [[nodiscard]] virtual RelayAdminStore& relay_admin_store() = 0;
  /// Tells at once which nodes are dead; null where the database cannot.
  [[nodiscard]] virtual NodeLocks* node_locks() noexcept { return nullptr; }
  [[nodiscard]] virtual StreamStore& stream_store() = 0;
  [[nodiscard]] virtual AuditStore& audit_store() = 0;
  /// Wakes other nodes; null where the database cannot.
  [[nodiscard]] virtual WakeChannel* wake_channel() noexcept { return nullptr; }
  /// Events were put into the queue through this object.
  [[nodiscard]] const std::shared_ptr<detail::Signal>& queue_grown() const noexcept { return queue_grown_; }
  /// Events were finalised through this object: the event log has new entries.
  [[nodiscard]] const std::shared_ptr<detail::Signal>& log_grown() const noexcept { return log_grown_; }
  /// Somebody has changed a pair of the relay through this object.
  [[nodiscard]] const std::shared_ptr<detail::Signal>& relay_changed() const noexcept {
    return relay_changed_;
  }
  /// Events were appended to the event store through this object.
  [[nodiscard]] const std::shared_ptr<detail::Signal>& stream_grown() const noexcept { return stream_grown_; }

 private:
  std::shared_ptr<detail::Signal> relay_changed_ = std::make_shared<detail::Signal>();
  std::shared_ptr<detail::Signal> queue_grown_ = std::make_shared<detail::Signal>();
  std::shared_ptr<detail::Signal> log_grown_ = std::make_shared<detail::Signal>();
  std::shared_ptr<detail::Signal> stream_grown_ = std::make_shared<detail::Signal>();
};

/// One kind of database that `open` can use: which URL schemes it takes, and how to open them.
struct StorageDriver {
  std::span<const std::string_view> schemes;
  std::unique_ptr<Storage> (*open)(std::string_view url, const StorageOptions& options);
};

/// Opens with the given drivers; throws Error(unsupported) for a scheme that none of them takes.
[[nodiscard]] std::unique_ptr<Storage> open_with(std::span<const StorageDriver> drivers, std::string_view url,
                                                 const StorageOptions& options);

}  // namespace postrider
