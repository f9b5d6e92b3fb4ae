// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/storage.hpp"

#include <array>
#include <utility>

#include "backends/mariadb/connection.hpp"
#include "backends/mariadb/migration_target.hpp"
#include "backends/mariadb/session.hpp"
#include "postrider/error.hpp"
#include "postrider/mariadb.hpp"
#include "storage/io_timeout.hpp"

namespace postrider::mariadb {
namespace {

// Of MariaDB's 64 characters for a name, our longest one ("_schema_migrations") leaves these.
constexpr std::size_t max_prefix = 46;

PoolOptions pool_options(const StorageOptions& options, const std::string& name) {
  if (options.pool_size < 1 || options.pool_size > 1000) {
    throw Error(ErrorCode::invalid_argument,
                "cannot use StorageOptions::pool_size = " + std::to_string(options.pool_size),
                "it must be between 1 and 1000");
  }
  if (options.schema.str().size() > max_prefix) {
    throw Error(
        ErrorCode::invalid_argument, "cannot open " + name,
        "StorageOptions::schema '" + options.schema.str() + "' is too long for a prefix of table names",
        "give at most " + std::to_string(max_prefix) + " characters");
  }
  return {.size = options.pool_size,
          .acquire_timeout = options.acquire_timeout,
          .name = name,
          .log = options.log};
}

ConnectSettings with_options(ConnectSettings settings, const StorageOptions& options) {
  settings.connect_timeout = std::chrono::ceil<std::chrono::seconds>(options.connect_timeout);
  const auto io_timeout = std::chrono::ceil<std::chrono::seconds>(io_timeout_of(options));
  if (!settings.read_timeout.has_value()) settings.read_timeout = io_timeout;
  if (!settings.write_timeout.has_value()) settings.write_timeout = io_timeout;
  return settings;
}

std::unique_ptr<Storage> open_storage(std::string_view url, const StorageOptions& options) {
  return std::make_unique<MariadbStorage>(parse_url(url), options);
}

}  // namespace

MariadbStorage::MariadbStorage(ConnectSettings settings, const StorageOptions& options)
    : settings_(with_options(std::move(settings), options)),
      schema_(options.schema),
      clock_(options.clock),
      name_(settings_.name()),
      pool_(pool_options(options, name_), [this] { return Connection::open(settings_); }),
      work_(pool_, settings_.read_timeout.value_or(std::chrono::seconds{0})),
      outbox_(work_, schema_, clock_, name_),
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
      node_locks_(settings_, schema_, work_),
      entries_(work_, schema_, clock_, dialect()),
      queue_(work_, schema_, clock_, name_),
      stream_(work_, schema_, clock_, StreamKeys(options.stream_hash), options.acquire_timeout, name_) {}

Transaction MariadbStorage::begin() {
  return Transaction(std::make_unique<OwnSession>(work_.begin()));
}

MigrationReport MariadbStorage::migrate(const MigrateOptions& options) {
  // A connection of its own: the lock is the connection's, and building an index may take as long as it
  // takes.
  ConnectSettings settings = settings_;
  settings.read_timeout = std::chrono::seconds{0};
  const std::unique_ptr<Connection> connection = Connection::open(settings);
  MariadbMigrationTarget target(connection->link(), schema_);
  return run_migrations(target, embedded_migrations(), schema_, options);
}

void MariadbStorage::ping() {
  work_.run([](Link& link) { link.command("DO 1"); });
}

SqlDialect MariadbStorage::dialect() {
  return {.kind = BackendKind::mariadb,
          .table_prefix = schema_.str() + "_",
          .run =
              [this](std::string_view sql, std::span<const Value> params) {
                Rows rows;
                work_.run([&](Link& link) { rows = link.run_any(sql, params); });
                return rows;
              },
          .begin = [this] { return begin(); },
          .from_micros = "(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL {} MICROSECOND)",
          .to_micros = "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {})",
          .now = "UTC_TIMESTAMP(6)",
          .clock = clock_,
          .hex = "LOWER(HEX({}))"};
}

StorageDriver driver() noexcept {
  static constexpr std::array<std::string_view, 2> schemes{"mariadb", "mysql"};
  return {.schemes = schemes, .open = open_storage};
}

}  // namespace postrider::mariadb
