// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/outbox_sql.hpp"

#include "backends/sqlite/event_columns.hpp"
#include "postrider/failed_attempt.hpp"

namespace postrider::sqlite {

OutboxSql::OutboxSql(const Identifier& schema) {
  const std::string table = schema.str() + "_outbox_event";
  const std::string attempt = schema.str() + "_outbox_attempt";
  // Every write about a held row: still pending, and with the holder's token.
  const std::string if_held = " where event_id = ? and token = ? and status in (0, 2)";
  const std::string free_again = "owner = null, lease_until = null";
  const std::string update = "update " + table + " set ";

  insert = "insert into " + table + " (" + std::string(event_columns) +
           ", available_at, owner, lease_until) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
  due_free = "select seq, due_at from " + table +
             " where due_at <= ? and ordering_key is null order by due_at, seq limit ?";
  due_ordered = "select seq, due_at, ordering_key from " + table +
                " where due_at <= ? and ordering_key is not null order by due_at, seq limit ?";
  run_of_key = "select seq, available_at, due_at, owner, lease_until from " + table +
               " where ordering_key = ? and due_at is not null order by seq";
  take = update + "owner = ?, lease_until = ?, token = token % 1000000000000000000 + 1 where seq = ?" +
         " returning " + std::string(event_columns) + ", attempts, token";
  defer = update + "owner = null, lease_until = ? where seq = ?";
  renew = update + "lease_until = ?" + if_held + " and owner is not null";
  done = update + "status = 1, done_at = ?, " + free_again + if_held;
  retry = update + "status = 2, attempts = ?, available_at = ?, last_error = ?, " + free_again + if_held;
  later =
      update + "available_at = ?, last_error = coalesce(nullif(?, ''), last_error), " + free_again + if_held;
  dead = update + "status = 3, done_at = ?, attempts = ?, last_error = ?, " + free_again + if_held;
  release = update + free_again + if_held;
  log_attempt =
      "insert into " + attempt +
      " (event_id, token, attempt, at, owner, outcome, error) select event_id, token, ?, ?, owner, ?, "
      "? from " +
      table + if_held + " on conflict do nothing";
  trim_attempts = "delete from " + attempt + " where event_id = ?1 and token <= (select token from " +
                  attempt + " where event_id = ?1 order by token desc limit 1 offset " +
                  std::to_string(max_kept_attempts) + ")";
  predecessors = "select event_id from " + table +
                 " where ordering_key = ? and due_at is not null and seq < (select seq from " + table +
                 " where event_id = ?) order by seq limit ?";
}

}  // namespace postrider::sqlite
