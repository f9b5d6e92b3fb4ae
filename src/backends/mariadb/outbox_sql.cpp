// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/outbox_sql.hpp"

#include "postrider/failed_attempt.hpp"

namespace postrider::mariadb {
namespace {

constexpr std::string_view outbox_claim_columns =
    "seq, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, payload, payload_bytes, headers, "
    "attempts, " POSTRIDER_MICROS("occurred_at") ", " POSTRIDER_MICROS("created_at") ", token, "
    POSTRIDER_MICROS("due_at") ", " POSTRIDER_MICROS("available_at") ", " POSTRIDER_MICROS("lease_until") ", owner";

std::string over(const std::string& table, std::string_view text) {
  return replaced(replaced(text, "{columns}", outbox_claim_columns), "{table}", table);
}

}  // namespace

OutboxSql::OutboxSql(const Identifier& schema)
    : table(schema.str() + "_outbox_event"),
      now("SELECT " POSTRIDER_MICROS("UTC_TIMESTAMP(6)")),
      insert(over(
          table,
          "INSERT INTO {table} (event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, "
          "payload, payload_bytes, headers, available_at, created_at, occurred_at, owner, lease_until) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, COALESCE(" POSTRIDER_AT ", " POSTRIDER_AT
          ", UTC_TIMESTAMP(6)), " POSTRIDER_NOW ", " POSTRIDER_AT ", ?, " POSTRIDER_NOW
          " + INTERVAL ? MICROSECOND)")),
      lock_free(over(table,
                     "SELECT {columns} FROM {table} FORCE INDEX (outbox_event_due) WHERE due_lane = 0 "
                     "AND due_at <= " POSTRIDER_AT " ORDER BY due_at, seq LIMIT ? FOR UPDATE SKIP LOCKED")),
      due_keys(over(table, "SELECT seq, pending_key, " POSTRIDER_MICROS(
                               "due_at") " FROM {table} FORCE INDEX (outbox_event_due) "
                                         "WHERE due_lane = 1 AND due_at <= " POSTRIDER_AT
                                         " ORDER BY due_at, seq LIMIT ?")),
      key_runs(
          "{list}",
          over(table, "(SELECT pending_key, seq, " POSTRIDER_MICROS("available_at") ", " POSTRIDER_MICROS(
                          "lease_until") ", owner FROM {table} FORCE INDEX (outbox_event_key) "
                                         "WHERE pending_key = ? AND seq >= ? ORDER BY seq LIMIT ?)"),
          " UNION ALL "),
      lock_rows(over(
          table,
          "SELECT {columns} FROM {table} FORCE INDEX (PRIMARY) WHERE seq IN ({list}) AND status IN (0, 2) "
          "FOR UPDATE SKIP LOCKED")),
      lock_due(over(
          table,
          "SELECT seq FROM {table} FORCE INDEX (PRIMARY) WHERE seq IN ({list}) AND due_at <= " POSTRIDER_AT
          " FOR UPDATE SKIP LOCKED")),
      take(over(table, "UPDATE {table} FORCE INDEX (PRIMARY) SET owner = ?, lease_until = " POSTRIDER_AT
                       ", token = token % 1000000000000000000 + 1 WHERE seq IN ({list})")),
      defer(over(table, "UPDATE {table} SET owner = NULL, lease_until = " POSTRIDER_AT " WHERE seq = ?")),
      lock_held(over(table,
                     "SELECT seq, event_id, token, owner FROM {table} FORCE INDEX (outbox_event_id) "
                     "WHERE event_id IN ({list}) AND status IN (0, 2) FOR UPDATE")),
      extend(over(table, "UPDATE {table} FORCE INDEX (PRIMARY) SET lease_until = " POSTRIDER_NOW
                         " + INTERVAL ? MICROSECOND WHERE seq IN ({list})")),
      finish(over(table,
                  "UPDATE {table} FORCE INDEX (outbox_event_id) SET status = 1, done_at = " POSTRIDER_NOW
                  ", owner = NULL, lease_until = NULL WHERE token = ? AND event_id IN ({list}) AND status IN "
                  "(0, 2)")),
      release(over(table,
                   "UPDATE {table} FORCE INDEX (outbox_event_id) SET owner = NULL, lease_until = NULL "
                   "WHERE token = ? AND event_id IN ({list}) AND status IN (0, 2)")),
      retry(over(table,
                 "UPDATE {table} SET status = 2, attempts = ?, last_error = ?, available_at = " POSTRIDER_NOW
                 " + INTERVAL ? MICROSECOND, owner = NULL, lease_until = NULL "
                 "WHERE event_id = ? AND token = ? AND status IN (0, 2)")),
      later(over(table,
                 "UPDATE {table} SET last_error = COALESCE(NULLIF(?, ''), last_error), "
                 "available_at = " POSTRIDER_NOW
                 " + INTERVAL ? MICROSECOND, owner = NULL, lease_until = NULL "
                 "WHERE event_id = ? AND token = ? AND status IN (0, 2)")),
      bury(over(table,
                "UPDATE {table} SET status = 3, attempts = ?, last_error = ?, done_at = " POSTRIDER_NOW
                ", owner = NULL, lease_until = NULL WHERE event_id = ? AND token = ? AND status IN (0, 2)")),
      log_attempt(
          replaced("INSERT IGNORE INTO {attempts} (event_id, token, attempt, at, owner, outcome, error) "
                   "VALUES (?, ?, ?, " POSTRIDER_NOW ", ?, ?, ?)",
                   "{attempts}", schema.str() + "_outbox_attempt")),
      // In a table of its own, because what is deleted from cannot be read at the same time.
      trim_attempts(
          replaced("DELETE FROM {attempts} WHERE event_id = ? AND token <= (SELECT token FROM (SELECT "
                   "token FROM {attempts} WHERE event_id = ? ORDER BY token DESC LIMIT 1 OFFSET " +
                       std::to_string(max_kept_attempts) + ") AS newest)",
                   "{attempts}", schema.str() + "_outbox_attempt")),
      predecessors(over(table,
                        "SELECT event_id FROM {table} FORCE INDEX (outbox_event_key) WHERE pending_key = ? "
                        "AND seq < (SELECT seq FROM {table} WHERE event_id = ?) ORDER BY seq LIMIT ?")),
      probe(over(table, "SELECT seq FROM {table} WHERE seq = 0")) {}

}  // namespace postrider::mariadb
