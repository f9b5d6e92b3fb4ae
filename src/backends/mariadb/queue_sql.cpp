// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/queue_sql.hpp"

#include "postrider/failed_attempt.hpp"
#include "storage/queue_store.hpp"

namespace postrider::mariadb {
namespace {

constexpr std::string_view queue_claim_columns =
    "id, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, payload, "
    "payload_bytes, headers, "
    "status, priority, attempts, crashes, token, " POSTRIDER_MICROS("available_at") ", " POSTRIDER_MICROS(
        "created_at") ", " POSTRIDER_MICROS("occurred_at") ", owner";

/// What goes over into the log as it is. The token comes second, as in what `lock_whole` answers.
constexpr std::string_view moved_columns =
    "event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, payload, payload_bytes, "
    "headers, "
    "priority, attempts, crashes, created_at, occurred_at, processing_started_at";

constexpr std::string_view insert_unit =
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, COALESCE(" POSTRIDER_AT ", " POSTRIDER_AT
    ", UTC_TIMESTAMP(6)), " POSTRIDER_NOW ", " POSTRIDER_NOW ", " POSTRIDER_AT ")";

/// Parameter: types between NULs (see `types_between_nuls`), so that no type can look like two.
#define POSTRIDER_OTHER_TYPE "INSTR(?, CONCAT(CHAR(0), event_type, CHAR(0))) = 0"

/// Parameters: now, now, types.
#define POSTRIDER_ELIGIBLE                                                                                   \
  "(available_at <= " POSTRIDER_AT " AND (status = 0 OR lease_until IS NULL OR lease_until <= " POSTRIDER_AT \
  ") AND " POSTRIDER_OTHER_TYPE ")"

/// The place in the order of claims from which on rows are looked for, as two ranges of the index.
/// Parameters: available_at, id, available_at, now, now, the number of crashes that they must be below
/// (abandoned ones, with status 1, have one more than is stored), types.
#define POSTRIDER_DUE_FROM                                                          \
  "((available_at = " POSTRIDER_AT " AND id >= ?) OR (available_at > " POSTRIDER_AT \
  " AND available_at <= " POSTRIDER_AT                                              \
  ")) AND (status = 0 OR lease_until IS NULL OR lease_until <= " POSTRIDER_AT       \
  ") AND crashes + status < ? AND " POSTRIDER_OTHER_TYPE

std::string over(const Identifier& schema, std::string_view text) {
  const std::string prefix = schema.str() + "_event_";
  std::string result = replaced(text, "{columns}", queue_claim_columns);
  result = replaced(result, "{moved}", moved_columns);
  result = replaced(result, "{queue}", prefix + "queue");
  result = replaced(result, "{log}", prefix + "log");
  result = replaced(result, "{head}", prefix + "log_head");
  result = replaced(result, "{attempts}", prefix + "attempt");
  return replaced(result, "{state}", prefix + "handler_state");
}

/// However many rows a key has, no more entries of the index are read than the page is long.
std::string heads(const Identifier& schema, std::string_view from) {
  return over(schema,
              "SELECT pending_key, MIN(id), COUNT(*) FROM (SELECT pending_key, id FROM {queue} FORCE INDEX "
              "(event_queue_key) WHERE pending_key " +
                  std::string(from) +
                  " ? ORDER BY pending_key, id LIMIT ?) AS page GROUP BY pending_key ORDER BY pending_key");
}

std::string first_due_of_each_level(const Identifier& schema) {
  std::string result;
  for (int level = max_priority; level >= 0; --level) {
    if (!result.empty()) result += " UNION ALL ";
    const std::string one = over(
        schema, "(SELECT {level}, " POSTRIDER_MICROS("available_at") ", id FROM {queue} FORCE INDEX (event_queue_due) "
                "WHERE due_priority = {level} AND " POSTRIDER_DUE_FROM " ORDER BY available_at, id LIMIT 1)");
    result += replaced(one, "{level}", std::to_string(level));
  }
  // How long the others took, on the server: a round trip says more about the network and the machine's load.
  return result + " UNION ALL (SELECT -1, TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)), 0)";
}

}  // namespace

QueueSql::QueueSql(const Identifier& schema)
    : now("SELECT " POSTRIDER_MICROS("UTC_TIMESTAMP(6)")),
      step("SELECT @@SESSION.auto_increment_increment"),
      insert(over(schema,
                  "INSERT INTO {queue} (event_id, event_type, aggregate_type, aggregate_id, tenant_id, "
                  "ordering_key, dedupe_key, payload, payload_bytes, headers, priority, available_at, "
                  "created_at, updated_at, occurred_at) VALUES {list}"),
             insert_unit),
      insert_unique(insert.for_count(1).sql +
                    " ON DUPLICATE KEY UPDATE token = token + LAST_INSERT_ID(-id) * 0"),
      first_due(first_due_of_each_level(schema)),
      lock_due(over(schema,
                    "SELECT {columns} FROM {queue} FORCE INDEX (event_queue_due) WHERE due_priority = ? "
                    "AND " POSTRIDER_DUE_FROM " ORDER BY available_at, id LIMIT ? FOR UPDATE SKIP LOCKED")),
      first_heads(heads(schema, ">=")),
      next_heads(heads(schema, ">")),
      eligible(
          over(schema,
               "SELECT id FROM {queue} FORCE INDEX (PRIMARY) WHERE id IN ({list}) AND " POSTRIDER_ELIGIBLE)),
      followers("{list}",
                over(schema, "(SELECT pending_key, id, " POSTRIDER_ELIGIBLE
                             " FROM {queue} FORCE INDEX (event_queue_key) "
                             "WHERE pending_key = ? AND id > ? ORDER BY id LIMIT ?)"),
                " UNION ALL "),
      lock_rows(over(
          schema,
          "SELECT {columns} FROM {queue} FORCE INDEX (PRIMARY) WHERE id IN ({list}) AND " POSTRIDER_ELIGIBLE
          " AND quarantined_at IS NULL FOR UPDATE SKIP LOCKED")),
      // Assignments happen from left to right: an abandoned row still is 1 when its crash is counted.
      take(over(schema,
                "UPDATE {queue} FORCE INDEX (PRIMARY) SET crashes = LEAST(crashes, 2147483646) + status, "
                "status = 1, attempts = LEAST(attempts, 2147483646) + 1, token = token % 1000000000000000000 "
                "+ 1, owner = ?, lease_until "
                "= " POSTRIDER_AT ", processing_started_at = " POSTRIDER_AT ", updated_at = " POSTRIDER_AT
                ", room = NULL WHERE id IN ({list})")),
      quarantine(over(schema,
                      "UPDATE {queue} SET quarantined_at = " POSTRIDER_AT ", updated_at = " POSTRIDER_AT
                      ", crashes = LEAST(crashes, 2147483646) + 1, status = 0, token = token % "
                      "1000000000000000000 + 1, owner = NULL, "
                      "lease_until = NULL, last_error = ? WHERE id = ?")),
      lock_held(over(schema,
                     "SELECT id, token, status FROM {queue} FORCE INDEX (PRIMARY) WHERE id IN ({list}) "
                     "FOR UPDATE")),
      lock_idle(lock_held, " SKIP LOCKED"),
      held(over(schema,
                "SELECT id, token FROM {queue} FORCE INDEX (PRIMARY) WHERE status = 1 AND "
                "lease_until > " POSTRIDER_NOW " AND id IN ({list})")),
      extend(over(schema, "UPDATE {queue} FORCE INDEX (PRIMARY) SET lease_until = " POSTRIDER_NOW
                          " + INTERVAL ? MICROSECOND, updated_at = " POSTRIDER_NOW " WHERE id IN ({list})")),
      lock_whole(
          over(schema,
               "SELECT id, token, status, {moved} FROM {queue} FORCE INDEX (PRIMARY) WHERE id IN ({list}) "
               "FOR UPDATE")),
      lock_whole_idle(lock_whole, " SKIP LOCKED"),
      present(over(schema, "SELECT id FROM {queue} FORCE INDEX (PRIMARY) WHERE id IN ({list})")),
      remove_one(over(schema, "DELETE FROM {queue} WHERE id = ?")),
      // A DELETE cannot be told which index to use: over a small table the server would rather read all of
      // it, and wait for rows that others have locked. Then the other form serves, which takes twice the
      // time.
      remove(over(schema,
                  "SET STATEMENT innodb_lock_wait_timeout = 1 FOR DELETE FROM {queue} WHERE id IN ({list})")),
      take_out(over(schema,
                    "SET STATEMENT innodb_lock_wait_timeout = 1 FOR DELETE FROM {queue} WHERE id IN ({list}) "
                    "RETURNING id, token, status, {moved}")),
      remove_exactly(over(schema,
                          "DELETE q FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) u STRAIGHT_JOIN "
                          "{queue} q FORCE INDEX (PRIMARY) WHERE q.id = u.id")),
      find_logged(over(schema, "SELECT id, token FROM {log} FORCE INDEX (PRIMARY) WHERE id IN ({list})")),
      retry(over(schema, "UPDATE {queue} SET status = 0, available_at = " POSTRIDER_NOW
                         " + INTERVAL ? MICROSECOND, owner = NULL, lease_until = NULL, last_error = ?, "
                         "updated_at = " POSTRIDER_NOW " WHERE id = ?")),
      release(over(schema,
                   "UPDATE {queue} FORCE INDEX (PRIMARY) SET status = 0, attempts = GREATEST(attempts, 1) - "
                   "1, owner = NULL, "
                   "lease_until = NULL, updated_at = " POSTRIDER_NOW " WHERE id IN ({list})")),
      postpone(over(schema, "UPDATE {queue} SET available_at = GREATEST(available_at, " POSTRIDER_NOW
                            " + INTERVAL ? MICROSECOND) WHERE id = ?")),
      move(over(
          schema,
          "INSERT INTO {log} (id, token, {moved}, status, finalized_at, results) SELECT id, token, {moved}, "
          "?, " POSTRIDER_NOW ", ? FROM {queue} WHERE id = ?")),
      save_state(over(schema,
                      "INSERT INTO {state} (id, handler, result, failed, error, updated_at) VALUES "
                      "(?, ?, ?, ?, ?, " POSTRIDER_NOW
                      // From left to right: the result comes last, because the others ask for it.
                      ") ON DUPLICATE KEY UPDATE failed = IF(result = 0, failed, VALUES(failed)), "
                      "error = IF(result = 0, error, VALUES(error)), "
                      "updated_at = IF(result = 0, updated_at, VALUES(updated_at)), "
                      "result = IF(result = 0, 0, VALUES(result))")),
      // Read, and then written: bulk cannot INSERT … SELECT.
      attempt_facts(
          over(schema,
               "SELECT id, token, attempts, " POSTRIDER_MICROS("processing_started_at") ", " POSTRIDER_MICROS(
                   "lease_until") ", owner FROM {queue} FORCE INDEX (PRIMARY) "
                                  "WHERE id IN ({list}) AND status = 1")),
      lock_attempt_facts(attempt_facts, " FOR UPDATE"),
      log_attempt(over(schema,
                       "INSERT IGNORE INTO {attempts} (id, token, attempt, started_at, at, owner, outcome, "
                       "error) VALUES (?, ?, ?, " POSTRIDER_AT ", " POSTRIDER_NOW ", ?, ?, ?)")),
      // In a table of its own, because what is deleted from cannot be read at the same time.
      trim_attempts(over(schema,
                         "DELETE FROM {attempts} WHERE id = ? AND token <= (SELECT token FROM (SELECT "
                         "token FROM {attempts} WHERE id = ? ORDER BY token DESC LIMIT 1 OFFSET " +
                             std::to_string(max_kept_attempts) + ") AS newest)")),
      load_states(over(schema,
                       "SELECT id, handler, result, failed, error FROM {state} FORCE INDEX (PRIMARY) "
                       "WHERE id IN ({list}) ORDER BY id, handler")),
      done_states(over(schema,
                       "SELECT handler FROM {state} FORCE INDEX (PRIMARY) WHERE id = ? AND result = 0 "
                       "LOCK IN SHARE MODE")),
      find_orphans(
          over(schema,
               "SELECT s.id, s.handler FROM {state} s FORCE INDEX (PRIMARY) LEFT JOIN {queue} q "
               "FORCE INDEX (PRIMARY) ON q.id = s.id WHERE q.id IS NULL ORDER BY s.id, s.handler LIMIT ?")),
      drop_state(over(schema, "DELETE FROM {state} WHERE id = ? AND handler = ?")),
      take_numbers(over(schema, "UPDATE {head} SET last = last + ? WHERE one = 1")),
      last_number(
          over(schema,
               "SELECT last, EXISTS (SELECT 1 FROM {log} FORCE INDEX (event_log_seq) WHERE seq IS NULL) "
               "FROM {head} WHERE one = 1")),
      unnumbered(over(schema, "SELECT id FROM {log} FORCE INDEX (event_log_seq) WHERE seq IS NULL LIMIT 1")),
      lock_unnumbered(over(schema,
                           "SELECT id FROM {log} FORCE INDEX (event_log_seq) WHERE seq IS NULL "
                           "LIMIT ? FOR UPDATE SKIP LOCKED")),
      give_number(over(schema, "UPDATE {log} SET seq = ? WHERE id = ?")),
      log(over(schema,
               "INSERT INTO {log} (id, token, {moved}, seq, status, results, finalized_at) VALUES "
               "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " POSTRIDER_NOW ")")),
      probe(over(schema,
                 "SELECT 1 FROM {queue} q, {log} l, {head} h, {state} s WHERE q.id = 0 AND l.id = 0 AND "
                 "h.one = 0 AND s.id = 0")) {}

}  // namespace postrider::mariadb
