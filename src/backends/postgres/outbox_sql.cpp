// SPDX-License-Identifier: Apache-2.0
// The plans of these statements are proved in outbox_plan_test.cpp: each keeps its index scan under a generic
// plan that was made while the table was empty.
#include "backends/postgres/outbox_store.hpp"
#include "storage/attempts.hpp"

namespace postrider::postgres {

namespace {

/// `{t}` becomes the table, `{attempts}` that of the attempts, `{now:N}` the time of the statement, given as
/// parameter N or taken from the server.
Statement make(std::string_view text, const std::string& table, const std::string& attempts = {}) {
  std::string sql;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    const std::string_view word = text.substr(open + 1, close - open - 1);
    sql += text.substr(0, open);
    if (word == "t") {
      sql += table;
    } else if (word == "attempts") {
      sql += attempts;
    } else if (word == "chars") {
      sql += std::to_string(max_attempt_error_chars);
    } else if (word == "kept") {
      sql += std::to_string(max_kept_attempts);
    } else if (word == "row") {
      sql +=
          "t.event_id, t.event_type, t.aggregate_type, t.aggregate_id, t.tenant_id, t.ordering_key, "
          "t.headers, "
          "t.payload, t.payload_bytes, t.occurred_at, t.created_at, t.attempts, t.token, t.seq";
    } else {
      sql += "coalesce($";
      sql += word.substr(word.find(':') + 1);
      sql += "::timestamptz, statement_timestamp())";
    }
    text.remove_prefix(close + 1);
  }
  sql += text;
  return Statement(std::move(sql));
}

}  // namespace

OutboxSql::OutboxSql(const Identifier& schema)
    : table(schema.str() + ".outbox_event"),
      attempts(schema.str() + ".outbox_attempt"),

      insert_one(make("INSERT INTO {t} (event_id, event_type, aggregate_type, aggregate_id, tenant_id, "
                      "ordering_key, headers, payload, "
                      "payload_bytes, occurred_at, created_at, available_at, owner, lease_until) "
                      "VALUES ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::json, "
                      "$8::json, $9::bytea, "
                      "$10::timestamptz, {now:14}, coalesce($11::timestamptz, {now:14}), "
                      "CASE WHEN $12::interval IS NOT NULL THEN $13::text END, {now:14} + $12::interval)",
                      table)),

      // unnest keeps the order of its arrays, so seq follows the caller's order. A column without any value
      // travels as one NULL.
      insert_many(make("INSERT INTO {t} (event_id, event_type, aggregate_type, aggregate_id, tenant_id, "
                       "ordering_key, headers, payload, "
                       "payload_bytes, occurred_at, created_at, available_at, owner, lease_until) "
                       "SELECT u.id, u.type, u.aggregate_type, u.aggregate_id, u.tenant, u.key, u.headers, "
                       "u.payload, u.bytes, "
                       "u.occurred_at, {now:14}, coalesce(u.deliver_at, {now:14}), "
                       "CASE WHEN u.lease IS NOT NULL THEN $13::text END, {now:14} + u.lease "
                       "FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], "
                       "$7::json[], $8::json[], "
                       "$9::bytea[], $10::timestamptz[], $11::timestamptz[], $12::interval[]) "
                       "AS u(id, type, aggregate_type, aggregate_id, tenant, key, headers, payload, bytes, "
                       "occurred_at, deliver_at, lease)",
                       table)),

      any_ordered_due(make(
          "SELECT EXISTS (SELECT 1 FROM {t} WHERE due_at <= {now:1} AND ordering_key IS NOT NULL)", table)),

      // Joined by ctid, not by key: under SKIP LOCKED and a generic plan this is the shape that cannot
      // degrade.
      claim_unless_ordered(
          make("WITH picked AS MATERIALIZED (SELECT ctid, due_at FROM {t} WHERE due_at <= {now:4} AND "
               "ordering_key IS NULL "
               "ORDER BY due_at LIMIT CASE WHEN EXISTS (SELECT 1 FROM {t} WHERE due_at <= {now:4} AND "
               "ordering_key IS NOT NULL) "
               "THEN 0 ELSE $3::bigint END FOR UPDATE SKIP LOCKED) "
               "UPDATE {t} AS t SET owner = $1::text, lease_until = {now:4} + $2::interval, "
               "token = t.token % 1000000000000000000 + 1 "
               "FROM picked WHERE t.ctid = picked.ctid RETURNING {row}, picked.due_at",
               table)),
      claim_unordered(
          make("WITH picked AS MATERIALIZED (SELECT ctid, due_at FROM {t} WHERE due_at <= {now:4} AND "
               "ordering_key IS NULL "
               "ORDER BY due_at LIMIT $3::bigint FOR UPDATE SKIP LOCKED) "
               "UPDATE {t} AS t SET owner = $1::text, lease_until = {now:4} + $2::interval, "
               "token = t.token % 1000000000000000000 + 1 "
               "FROM picked WHERE t.ctid = picked.ctid RETURNING {row}, picked.due_at",
               table)),

      // How many of the rows due for longest have no key, so that neither kind can starve the other.
      unordered_share(make("SELECT count(*) FROM (SELECT free FROM ("
                           "(SELECT due_at, true AS free FROM {t} WHERE due_at <= {now:2} AND ordering_key "
                           "IS NULL ORDER BY due_at LIMIT $1::bigint) "
                           "UNION ALL "
                           "(SELECT due_at, false FROM {t} WHERE due_at <= {now:2} AND ordering_key IS NOT "
                           "NULL ORDER BY due_at LIMIT $1::bigint)"
                           ") AS both_kinds ORDER BY due_at LIMIT $1::bigint) AS longest WHERE free",
                           table)),

      // The head is found first and locked by its id: SKIP LOCKED over a scan by seq would skip a locked head
      // and return the row behind it. A head that somebody works on just now is missing from the result, and
      // its key waits.
      heads(make(
          "WITH scan AS MATERIALIZED (SELECT ordering_key, due_at FROM {t} "
          "WHERE due_at <= {now:3} AND ordering_key IS NOT NULL ORDER BY due_at LIMIT $2::bigint), "
          "keys AS MATERIALIZED (SELECT ordering_key AS key, min(due_at) AS first_due FROM scan GROUP BY "
          "ordering_key "
          "UNION ALL SELECT c.key, NULL FROM unnest($1::text[]) AS c(key) "
          "WHERE NOT EXISTS (SELECT 1 FROM scan WHERE scan.ordering_key = c.key)) "
          "SELECT k.key, k.first_due, h.event_id, h.seq, "
          "h.available_at <= {now:3} AND (h.owner IS NULL OR h.lease_until IS NULL OR h.lease_until <= "
          "{now:3}), "
          "CASE WHEN h.available_at > {now:3} THEN h.available_at ELSE least(h.due_at, {now:3} + interval '1 "
          "second') "
          "END, (SELECT count(*) FROM scan) "
          "FROM keys AS k CROSS JOIN LATERAL (SELECT event_id FROM {t} WHERE ordering_key = k.key AND due_at "
          "IS NOT NULL "
          "ORDER BY seq LIMIT 1) AS m JOIN {t} AS h ON h.event_id = m.event_id "
          "WHERE h.due_at IS NOT NULL FOR UPDATE OF h SKIP LOCKED",
          table)),

      // `place` counts the rows behind the head before any is skipped: a gap in it shows a row that could not
      // be locked.
      followers(make(
          "SELECT m.run, m.place, f.event_id, "
          "f.available_at <= {now:4} AND (f.owner IS NULL OR f.lease_until IS NULL OR f.lease_until <= "
          "{now:4}), f.seq "
          "FROM (SELECT k.run, x.event_id, x.place FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS "
          "k(key, seq, run) "
          "CROSS JOIN LATERAL (SELECT event_id, row_number() OVER in_order AS place, bool_and("
          "available_at <= {now:4} AND (owner IS NULL OR lease_until IS NULL OR lease_until <= {now:4})) "
          "OVER in_order AS free FROM {t} "
          "WHERE ordering_key = k.key AND due_at IS NOT NULL AND seq > k.seq "
          "WINDOW in_order AS (ORDER BY seq) ORDER BY seq LIMIT $3::bigint) AS x "
          "WHERE x.free LIMIT $5::bigint) AS m JOIN {t} AS f ON f.event_id = m.event_id "
          "WHERE f.due_at IS NOT NULL FOR UPDATE OF f SKIP LOCKED",
          table)),
      take(make("UPDATE {t} AS t SET owner = $1::text, lease_until = {now:4} + $2::interval, "
                "token = t.token % 1000000000000000000 + 1 "
                "WHERE t.event_id = ANY($3::text[]) RETURNING {row}",
                table)),
      defer(make("UPDATE {t} AS t SET owner = NULL, lease_until = greatest(d.until, {now:4} + interval '100 "
                 "milliseconds') "
                 "FROM (SELECT x.ctid, k.until FROM unnest($1::text[], $2::bigint[], $3::timestamptz[]) AS "
                 "k(key, seq, until) "
                 "CROSS JOIN LATERAL (SELECT ctid FROM {t} WHERE ordering_key = k.key AND due_at <= {now:4} "
                 "AND seq > k.seq "
                 "ORDER BY seq LIMIT 1000 FOR UPDATE SKIP LOCKED) AS x) AS d WHERE t.ctid = d.ctid",
                 table)),

      renew(make("UPDATE {t} AS t SET lease_until = {now:4} + $3::interval FROM unnest($1::text[], "
                 "$2::bigint[]) AS u(id, token) "
                 "WHERE t.event_id = u.id AND t.token = u.token AND t.status IN (0, 2) AND t.owner IS NOT "
                 "NULL RETURNING t.event_id",
                 table)),

      done(make("UPDATE {t} SET status = 1, done_at = {now:3}, owner = NULL, lease_until = NULL "
                "WHERE event_id = ANY($1::text[]) AND token = $2::bigint AND status IN (0, 2)",
                table)),
      done_each(make("UPDATE {t} AS t SET status = 1, done_at = {now:3}, owner = NULL, lease_until = NULL "
                     "FROM unnest($1::text[], $2::bigint[]) AS u(id, token) "
                     "WHERE t.event_id = u.id AND t.token = u.token AND t.status IN (0, 2)",
                     table)),
      // The lines of failed attempts are written with the rows that they are about, of those alone that are
      // still held. `held` knows the owner, whom the update forgets.
      retry(make("WITH held AS MATERIALIZED (SELECT t.event_id, t.token, t.owner, u.failed, u.delay, u.error "
                 "FROM unnest($1::text[], $2::bigint[], $3::int[], $4::interval[], $5::text[]) AS u(id, "
                 "token, failed, delay, error) JOIN {t} AS t ON t.event_id = u.id AND t.token = u.token "
                 "WHERE t.status IN (0, 2) FOR UPDATE OF t), "
                 "lines AS (INSERT INTO {attempts} (event_id, token, attempt, at, owner, outcome, error) "
                 "SELECT event_id, token, failed, {now:6}, owner, 0, left(error, {chars}) FROM held "
                 "ON CONFLICT DO NOTHING) "
                 "UPDATE {t} AS t SET status = 2, attempts = u.failed, available_at = {now:6} + u.delay, "
                 "last_error = u.error, owner = NULL, lease_until = NULL FROM held AS u "
                 "WHERE t.event_id = u.event_id AND t.token = u.token AND t.status IN (0, 2)",
                 table, attempts)),
      later(make("UPDATE {t} AS t SET available_at = {now:5} + u.delay, "
                 "last_error = coalesce(nullif(u.error, ''), t.last_error), owner = NULL, lease_until = NULL "
                 "FROM unnest($1::text[], $2::bigint[], $3::interval[], $4::text[]) "
                 "AS u(id, token, delay, error) "
                 "WHERE t.event_id = u.id AND t.token = u.token AND t.status IN (0, 2)",
                 table)),
      dead(make(
          "WITH held AS MATERIALIZED (SELECT t.event_id, t.token, t.owner, u.failed, u.error "
          "FROM unnest($1::text[], $2::bigint[], $3::int[], $4::text[]) AS u(id, token, failed, error) "
          "JOIN {t} AS t ON t.event_id = u.id AND t.token = u.token "
          "WHERE t.status IN (0, 2) FOR UPDATE OF t), "
          "lines AS (INSERT INTO {attempts} (event_id, token, attempt, at, owner, outcome, error) "
          "SELECT event_id, token, failed, {now:5}, owner, 1, left(error, {chars}) FROM held "
          "ON CONFLICT DO NOTHING) "
          "UPDATE {t} AS t SET status = 3, attempts = u.failed, done_at = {now:5}, last_error = u.error, "
          "owner = NULL, lease_until = NULL FROM held AS u "
          "WHERE t.event_id = u.event_id AND t.token = u.token AND t.status IN (0, 2)",
          table, attempts)),
      trim_attempts(make("DELETE FROM {attempts} AS a USING unnest($1::text[]) AS u(id) "
                         "WHERE a.event_id = u.id AND a.token <= (SELECT token FROM {attempts} "
                         "WHERE event_id = u.id ORDER BY token DESC OFFSET {kept} LIMIT 1)",
                         table, attempts)),
      release(make("UPDATE {t} AS t SET owner = NULL, lease_until = NULL FROM unnest($1::text[], "
                   "$2::bigint[]) AS u(id, token) "
                   "WHERE t.event_id = u.id AND t.token = u.token AND t.status IN (0, 2)",
                   table)),

      predecessors(
          make("SELECT event_id FROM {t} WHERE ordering_key = $1::text AND due_at IS NOT NULL "
               "AND seq < (SELECT seq FROM {t} WHERE event_id = $2::text) ORDER BY seq LIMIT $3::bigint",
               table)) {}

}  // namespace postrider::postgres
