// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/storage.hpp"

#include <array>
#include <utility>

#include "backends/sqlite/migration_target.hpp"
#include "backends/sqlite/session.hpp"
#include "postrider/error.hpp"
#include "postrider/sqlite.hpp"
#include "storage/migrator.hpp"
#include "storage/sqlite_file.hpp"

namespace postrider::sqlite {
SqliteStorage::SqliteStorage(std::string_view url, const StorageOptions& options)
    : options_(options),
      name_(url),
      path_(sqlite_file_of(url)),
      clock_(options.clock != nullptr ? *options.clock : Clock::system()),
      writer_(connection_options(false), options.acquire_timeout, clock_),
      readers_(
          {.size = options.pool_size, .acquire_timeout = options.acquire_timeout, .name = name_},
          [this] { return std::make_unique<Connection>(connection_options(true)); }, clock_),
      outbox_(options.schema, name_, clock_, writer_, readers_),
      admin_(dialect()),
      outbox_search_(dialect()),
      outbox_pending_(dialect()),
      audit_(dialect()),
      queue_admin_(dialect()),
      log_(dialect()),
      projections_(dialect()),
      progress_(dialect()),
      leases_(dialect()),
      relay_admin_(dialect()),
      node_locks_(path_),
      wake_(path_, options.log),
      entries_(options.schema, clock_, writer_, dialect()),
      queue_(options.schema, name_, clock_, writer_, readers_),
      stream_(options.schema, name_, clock_, StreamKeys(options.stream_hash), writer_, readers_) {}

ConnectionOptions SqliteStorage::connection_options(bool read_only) const {
  return {.name = name_,
          .path = path_,
          .full_sync = options_.sqlite_full_sync,
          .read_only = read_only,
          .busy_timeout = options_.sqlite_busy_timeout};
}

SqlDialect SqliteStorage::dialect() {
  return {.kind = BackendKind::sqlite,
          .table_prefix = options_.schema.str() + "_",
          .run =
              [this](std::string_view sql, std::span<const Value> params) {
                if (sql.starts_with("select")) return connection_of(readers_.acquire()).execute(sql, params);
                const Writer::Lease lease = writer_.acquire();
                WriteTransaction transaction(lease.connection());
                Rows rows = lease.connection().execute(sql, params);
                transaction.commit();
                return rows;
              },
          .begin = [this] { return begin(); },
          .from_micros = "{}",
          .to_micros = "{}",
          .now = {},
          .clock = &clock_,
          .hex = "lower(hex({}))"};
}

Transaction SqliteStorage::begin() {
  return Transaction(std::make_unique<OwnSession>(writer_.acquire()));
}

MigrationReport SqliteStorage::migrate(const MigrateOptions& options) {
  if (options.dry_run) {
    const ConnectionPool::Lease lease = readers_.acquire();
    SqliteMigrationTarget target(connection_of(lease), options_.schema, clock_);
    return run_migrations(target, embedded_migrations(), options_.schema, options);
  }
  const Writer::Lease lease = writer_.acquire();
  SqliteMigrationTarget target(lease.connection(), options_.schema, clock_);
  return run_migrations(target, embedded_migrations(), options_.schema, options);
}

PoolStats SqliteStorage::pool_stats() const {
  PoolStats stats = readers_.stats();
  stats.open += 1;
  stats.limit += 1;
  stats.in_use += writer_.in_use() ? 1 : 0;
  stats.waiting += writer_.waiting();
  return stats;
}

void SqliteStorage::ping() {
  const ConnectionPool::Lease lease = readers_.acquire();
  connection_of(lease).require_file();
  connection_of(lease).execute("select count(*) from sqlite_master", {});
}

StorageDriver driver() noexcept {
  static constexpr std::array<std::string_view, 1> schemes{"sqlite"};
  return {schemes, [](std::string_view url, const StorageOptions& options) -> std::unique_ptr<Storage> {
            return std::make_unique<SqliteStorage>(url, options);
          }};
}

}  // namespace postrider::sqlite
