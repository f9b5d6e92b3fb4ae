// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/storage.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "backends/postgres/migration_target.hpp"
#include "backends/postgres/session.hpp"
#include "postrider/postgres.hpp"
#include "storage/io_timeout.hpp"
#include "storage/placeholders.hpp"

namespace postrider::postgres {

namespace {

PoolOptions pool_options(const StorageOptions& options, const std::string& name) {
  PoolOptions result;
  result.size = options.pool_size;
  result.acquire_timeout = options.acquire_timeout;
  result.name = name;
  result.log = options.log;
  return result;
}

/// libpq takes anything for a port until it connects: mostly a part of a password in which a slash was not
/// encoded.
bool are_ports(std::string_view text) {
  while (!text.empty()) {  // one for each of several hosts
    const std::string_view one = text.substr(0, text.find(','));
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), port);
    if (!one.empty() && (error != std::errc{} || end != one.data() + one.size() || port == 0)) return false;
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return true;
}

constexpr std::string_view url_form =
    "write postgresql://user:password@host:port/database, with special characters percent-encoded";

/// libpq takes an '@' or '/' of a password for the end of it, and what follows for a host or a database,
/// which are shown.
void refuse_unencoded(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return;
  const std::string_view rest = url.substr(scheme + 3, url.find('?') - scheme - 3);
  const std::size_t at = rest.find('@');
  if (at == std::string_view::npos || (rest.rfind('@') == at && rest.find_first_of("/#") > at)) return;
  throw Error(ErrorCode::invalid_argument, "cannot read the PostgreSQL URL",
              "it is not clear where the password ends",
              "write %40 for '@', %2F for '/', %23 for '#' and %25 for '%' in user, password and database");
}

}  // namespace

std::string redacted(std::string_view url) {
  refuse_unencoded(url);
  char* message = nullptr;
  struct Free {
    void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
  };
  const std::unique_ptr<PQconninfoOption, Free> parsed(PQconninfoParse(std::string(url).c_str(), &message));
  if (parsed == nullptr) {
    // libpq quotes the part that it cannot read, which may be the password.
    std::string why = message == nullptr ? "out of memory" : message;
    PQfreemem(message);
    if (url.find("://") == std::string_view::npos) {
      why = "'//' is missing behind its scheme";
    } else if (const std::size_t quote = why.find('"'); quote != std::string::npos) {
      why.replace(quote, std::string::npos, "\"…\" (not shown: it may be the password)");
    }
    throw Error(ErrorCode::invalid_argument, "cannot read the PostgreSQL URL", why, url_form);
  }
  std::string user;
  std::string host;
  std::string port;
  std::string database;
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    const std::string_view keyword = option->keyword;
    if (keyword == "user") user = option->val;
    if (keyword == "host" || (keyword == "hostaddr" && host.empty())) host = option->val;
    if (keyword == "port") port = option->val;
    if (keyword == "dbname") database = option->val;
  }
  if (!are_ports(port)) {
    throw Error(ErrorCode::invalid_argument, "cannot read the PostgreSQL URL",
                "a port must be a number from 1 to 65535", url_form);
  }
  std::string name = "postgresql://";
  if (!user.empty()) name += user + "@";
  const bool socket = host.starts_with('/');
  if (!socket) name += host;
  if (!port.empty()) name += ":" + port;
  name += "/" + database;
  if (socket) name += "?host=" + host;
  return name;
}

PostgresStorage::PostgresStorage(std::string_view url, const StorageOptions& options)
    : schema_(options.schema),
      context_{.url = std::string(url),
               .name = redacted(url),
               .connect_timeout = options.connect_timeout,
               .io_timeout = io_timeout_of(options),
               .log = options.log},
      pool_(pool_options(options, context_.name), [this] { return std::make_unique<Connection>(context_); }),
      outbox_(
          schema_, options.clock, [this](const auto& work) { with_connection(work); },
          [this] { check_schema(); }),
      outbox_admin_(dialect(options.clock)),
      outbox_search_(dialect(options.clock)),
      outbox_pending_(dialect(options.clock)),
      audit_(dialect(options.clock)),
      queue_admin_(dialect(options.clock)),
      log_(dialect(options.clock)),
      projections_(dialect(options.clock)),
      progress_(dialect(options.clock)),
      leases_(dialect(options.clock)),
      relay_admin_(dialect(options.clock)),
      node_locks_(schema_, context_, [this](const auto& work) { with_connection(work); }),
      entries_(
          schema_, options.clock, [this](const auto& work) { with_connection(work); },
          dialect(options.clock)),
      queue_(
          schema_, options.clock, [this](const auto& work) { with_connection(work); },
          [this] { check_schema(); }),
      stream_(
          schema_, options.clock, options.acquire_timeout, StreamKeys(options.stream_hash),
          [this](const auto& work) { with_connection(work); }, [this] { check_schema(); }),
      wake_(schema_, context_, [this](const auto& work) { with_connection(work); }) {}

SqlDialect PostgresStorage::dialect(Clock* clock) {
  return {
      .kind = BackendKind::postgres,
      .table_prefix = schema_.str() + ".",
      .run = [this](std::string_view sql, std::span<const Value> params) { return run_alone(sql, params); },
      .run_often = [this](std::string_view sql,
                          std::span<const Value> params) { return run_often(sql, params); },
      .begin = [this] { return begin(); },
      .from_micros = "(timestamptz 'epoch' + {}::bigint * interval '1 microsecond')",
      .to_micros = "(extract(epoch from {}) * 1000000)::bigint",
      .now = "clock_timestamp()",
      .clock = clock,
      .hex = "encode({}, 'hex')"};
}

ConnectionPool::Lease PostgresStorage::acquire() {
  // A restarted server leaves a pool full of dead connections; each shows it at a look, without a round trip.
  for (;;) {
    ConnectionPool::Lease lease = pool_.acquire();
    if (static_cast<Connection*>(lease.get())->alive()) return lease;
    lease.discard();
  }
}

void PostgresStorage::with_connection(const std::function<void(Connection&)>& work) {
  const ConnectionPool::Lease lease = acquire();
  work(static_cast<Connection&>(*lease));
}

Transaction PostgresStorage::begin() {
  return Transaction(std::make_unique<PooledSession>(acquire()));
}

MigrationReport PostgresStorage::migrate(const MigrateOptions& options) {
  MigrationReport report;
  with_connection([&](Connection& connection) {
    PostgresMigrationTarget target(connection, schema_);
    report = run_migrations(target, embedded_migrations(), schema_, options);
  });
  return report;
}

void PostgresStorage::ping() {
  with_connection([&](Connection& connection) {
    Pipeline pipeline(connection, "cannot reach the server");
    pipeline.send_text("SELECT 1", {});
    (void)pipeline.finish();
  });
}

void PostgresStorage::check_schema() {
  with_connection([&](Connection& connection) {
    PostgresMigrationTarget target(connection, schema_);
    require_current_schema(embedded_migrations(), target.applied(), context_.name);
  });
}

Rows PostgresStorage::run_alone(std::string_view sql, std::span<const Value> params) {
  Rows rows;
  const std::string numbered = numbered_placeholders(sql).sql;
  with_connection([&](Connection& connection) {
    const RollbackGuard guard(connection);
    Pipeline pipeline(connection, "cannot run a statement");
    pipeline.send(begin_worker_statement);
    pipeline.send_text(numbered, params);
    pipeline.send_commit(false);
    rows = to_rows(pipeline.finish().at(1));
  });
  return rows;
}

Rows PostgresStorage::run_often(std::string_view sql, std::span<const Value> params) {
  Rows rows;
  const Statement statement(numbered_placeholders(sql).sql);
  with_connection([&](Connection& connection) {
    const RollbackGuard guard(connection);
    Pipeline pipeline(connection, "cannot run a statement");
    pipeline.send(begin_worker_statement);
    pipeline.send(settings_statement);
    pipeline.send_text(statement, params);
    pipeline.send_commit(true);
    rows = to_rows(pipeline.finish().at(2));
  });
  return rows;
}

StorageDriver driver() noexcept {
  static constexpr std::array<std::string_view, 2> schemes{"postgresql", "postgres"};
  return {schemes, [](std::string_view url, const StorageOptions& options) -> std::unique_ptr<Storage> {
            return std::make_unique<PostgresStorage>(url, options);
          }};
}

}  // namespace postrider::postgres
