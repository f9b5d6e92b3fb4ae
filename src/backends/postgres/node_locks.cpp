// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/node_locks.hpp"

#include <algorithm>
#include <utility>

#include "backends/postgres/session.hpp"
#include "storage/held_connection.hpp"
#include "storage/lock_number.hpp"

namespace postrider::postgres {

PostgresNodeLocks::PostgresNodeLocks(const Identifier& schema, ConnectionContext& context,
                                     WithConnection with_connection)
    : schema_(schema.str()), context_(context), with_connection_(std::move(with_connection)) {}

std::unique_ptr<NodeLocks::Held> PostgresNodeLocks::hold(std::string_view node) {
  auto connection = std::make_unique<Connection>(context_);
  // Behind a pooler in transaction mode the lock would stay with a server connection that is not ours.
  if (context_.unnamed_statements) return nullptr;
  const auto number = static_cast<std::int64_t>(lock_number(schema_, node));
  const Value param(number);
  Pipeline pipeline(*connection, "cannot take the lock of this node");
  pipeline.send_text("SELECT pg_try_advisory_lock($1::bigint)", {&param, 1});
  const Rows rows = to_rows(pipeline.finish().at(0));
  if (rows.text(0, 0) != "t") return nullptr;
  return std::make_unique<HeldConnection>(std::move(connection));
}

std::vector<std::string> PostgresNodeLocks::free(std::span<const std::string> nodes) {
  std::vector<std::string> held;
  with_connection_([&](Connection& connection) {
    held.clear();
    Pipeline pipeline(connection, "cannot see which nodes are alive");
    pipeline.send_text(
        "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND "
        "granted "
        "AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        {});
    for (const auto& row : to_rows(pipeline.finish().at(0)).rows) held.push_back(row.at(0).value_or(""));
  });
  std::vector<std::string> free;
  for (const std::string& node : nodes) {
    const std::string number = std::to_string(static_cast<std::int64_t>(lock_number(schema_, node)));
    if (std::find(held.begin(), held.end(), number) == held.end()) free.push_back(node);
  }
  return free;
}

}  // namespace postrider::postgres
