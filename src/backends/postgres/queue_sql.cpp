// SPDX-License-Identifier: Apache-2.0
// The plans of these statements are proved in queue_plan_test.cpp: each keeps its index scan under a generic
// plan that was made while the table was empty.
#include "backends/postgres/queue_sql.hpp"

#include "postrider/failed_attempt.hpp"

namespace postrider::postgres {

namespace {

/// Texts with `{words}` in them: the tables `{queue}`, `{log}`, `{state}`; `{now:N}`, the time of the
/// statement, given as parameter N or taken from the server; and the parts below.
class Texts {
 public:
  explicit Texts(const Identifier& schema) : schema_(schema.str()) {}

  [[nodiscard]] Statement operator()(std::string_view text) const { return Statement(expand(text)); }

 private:
  [[nodiscard]] std::string expand(std::string_view text) const {
    std::string sql;
    for (std::size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{')) {
      const std::size_t close = text.find('}', open);
      const std::string_view word = text.substr(open + 1, close - open - 1);
      sql += text.substr(0, open);
      sql += part(word.substr(0, word.find(':')), word.substr(word.find(':') + 1));
      text.remove_prefix(close + 1);
    }
    return sql += text;
  }

  [[nodiscard]] std::string part(std::string_view word, std::string_view parameter) const {
    std::string now = "coalesce($" + std::string(parameter) + "::timestamptz, statement_timestamp())";
    if (word == "now") return now;
    if (word == "queue") return schema_ + ".event_queue";
    if (word == "log") return schema_ + ".event_log";
    if (word == "state") return schema_ + ".event_handler_state";
    if (word == "attempts") return schema_ + ".event_attempt";
    if (word == "attempt_columns") return "id, token, attempt, started_at, at, owner, outcome, error";
    if (word == "kept") return std::to_string(max_kept_attempts);
    if (word == "next") return "nextval('" + schema_ + ".event_log_numbers')";
    if (word == "numbers") return "hashtextextended('postrider numbers of the log of " + schema_ + "', 0)";
    if (word == "free") {
      return "q.available_at <= " + now +
             " AND (q.status = 0 OR q.lease_until IS NULL OR q.lease_until <= " + now + ")";
    }
    if (word == "other_than") return "NOT (q.event_type = ANY($" + std::string(parameter) + "::text[]))";
    if (word == "insert") {
      return expand(
          "INSERT INTO {queue} (event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, "
          "dedupe_key, headers, payload, payload_bytes, priority, occurred_at, available_at, created_at, "
          "updated_at) "
          "SELECT u.id, u.type, u.aggregate_type, u.aggregate_id, u.tenant, u.key, u.dedupe, u.headers, "
          "u.payload, u.bytes, u.priority, u.occurred_at, coalesce(u.deliver_at, {now:14}), {now:14}, "
          "{now:14} "
          "FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], "
          "$8::json[], $9::json[], $10::bytea[], $11::smallint[], $12::timestamptz[], $13::timestamptz[]) "
          "AS u(id, type, aggregate_type, aggregate_id, tenant, key, dedupe, headers, payload, bytes, "
          "priority, occurred_at, deliver_at)");
    }
    if (word == "claim") {
      // No indexed column gets another value unless the row goes to quarantine, so the update stays on its
      // page (HOT). A counter that somebody else set to its end must not make the statement fail for all.
      return "status = CASE WHEN p.quarantine THEN 0 ELSE 1 END, "
             "attempts = CASE WHEN p.quarantine THEN t.attempts ELSE least(t.attempts, 2147483646) + 1 END, "
             "crashes = CASE WHEN p.abandoned THEN least(t.crashes, 2147483646) + 1 ELSE t.crashes END, "
             "token = t.token % 1000000000000000000 + 1, "
             "owner = CASE WHEN p.quarantine THEN NULL ELSE $1::text END, "
             "lease_until = CASE WHEN p.quarantine THEN NULL ELSE " +
             now +
             " + $2::interval END, "
             "processing_started_at = CASE WHEN p.quarantine THEN t.processing_started_at ELSE " +
             now + " END, updated_at = " + now + ", quarantined_at = CASE WHEN p.quarantine THEN " + now +
             " END, "
             "last_error = CASE WHEN p.quarantine THEN 'in progress when its worker died ' || "
             "least(t.crashes, 2147483646) + 1 || ' times (last: ' || coalesce(t.owner, 'unknown') || ')' "
             "ELSE t.last_error END";
    }
    if (word == "row") {
      return "t.event_id, t.event_type, t.aggregate_type, t.aggregate_id, t.tenant_id, t.ordering_key, "
             "t.headers, t.payload, t.payload_bytes, t.occurred_at, t.created_at, t.id, t.token, t.attempts, "
             "t.crashes, t.priority::int, t.processing_started_at, t.available_at, p.quarantine, p.abandoned";
    }
    if (word == "gone") {
      return expand(
          "gone AS (DELETE FROM {queue} AS q USING unnest($1::bigint[], $2::bigint[], $3::smallint[], "
          "$4::json[]) AS u(id, token, status, results) "
          "WHERE q.id = u.id AND q.token = u.token AND q.status = 1 "
          "RETURNING q.id, q.token, q.event_id, q.event_type, q.aggregate_type, q.aggregate_id, "
          "q.tenant_id, q.ordering_key, q.payload, q.payload_bytes, q.headers, u.status, q.priority, "
          "q.attempts, q.crashes, q.created_at, q.occurred_at, q.processing_started_at, u.results)");
    }
    if (word == "into_log") {
      return expand(
          "INSERT INTO {log} (seq, finalized_at, id, token, event_id, event_type, aggregate_type, "
          "aggregate_id, tenant_id, ordering_key, payload, payload_bytes, headers, status, priority, "
          "attempts, crashes, created_at, occurred_at, processing_started_at, results)");
    }
    return "handler = excluded.handler, result = excluded.result, failed = excluded.failed, error = "
           "excluded.error, updated_at = excluded.updated_at";  // {replace}
  }

  std::string schema_;
};

}  // namespace

QueueSql::QueueSql(const Identifier& schema)
    :  // unnest keeps the order of its arrays, so ids follow the caller's order. A column without any value
       // travels as one NULL.
      insert(Texts(schema)("{insert} RETURNING id, event_id")),
      insert_deduped(Texts(schema)("{insert} ON CONFLICT (dedupe_key) WHERE dedupe_key IS NOT NULL DO "
                                   "NOTHING RETURNING id, event_id")),
      find_deduped(
          Texts(schema)("SELECT u.place, q.id FROM unnest($1::text[]) WITH ORDINALITY AS u(key, place) "
                        "JOIN {queue} AS q ON q.dedupe_key = u.key")),

      // One range of the index per level, highest first; what is behind the row that fills the limit is never
      // touched, because every part of the plan gives one row at a time. Joined by ctid, not by key: under
      // SKIP LOCKED and a generic plan this is the shape that cannot degrade. The count runs along the scan,
      // so that suspects beyond their limit are passed over.
      claim(Texts(schema)(
          "WITH seen AS MATERIALIZED (SELECT x.ctid AS place, x.abandoned, "
          "x.crashes >= $12::int - x.abandoned::int AS suspect, "
          "x.abandoned AND $7::int > 0 AND x.crashes >= $7::int - 1 AS quarantine, "
          "clock_timestamp() AS seen_at "
          "FROM unnest($3::smallint[], $4::timestamptz[], $5::bigint[]) WITH ORDINALITY "
          "AS l(priority, after_at, after_id, number) "
          "CROSS JOIN LATERAL (SELECT q.ctid, q.status = 1 AS abandoned, q.crashes FROM {queue} AS q "
          "WHERE q.ordering_key IS NULL AND q.quarantined_at IS NULL AND q.priority = l.priority "
          "AND (q.available_at, q.id) > (l.after_at, l.after_id) AND q.available_at <= {now:10} "
          "AND (q.status = 0 OR q.lease_until IS NULL OR q.lease_until <= {now:10}) "
          "AND ($6::bigint > 0 OR q.crashes < $12::int - q.status) AND {other_than:11} "
          "ORDER BY q.available_at, q.id LIMIT $8::bigint FOR UPDATE SKIP LOCKED) AS x "
          "ORDER BY l.number LIMIT CASE WHEN $9::boolean AND EXISTS (SELECT 1 FROM {queue} "
          "WHERE ordering_key IS NOT NULL AND quarantined_at IS NULL) THEN 0 ELSE $8::bigint END), "
          "p AS (SELECT place, abandoned, suspect, quarantine, seen_at, "
          "count(*) FILTER (WHERE suspect AND NOT quarantine) OVER (ROWS UNBOUNDED PRECEDING) AS number "
          "FROM seen), "
          "crashed AS (INSERT INTO {attempts} ({attempt_columns}) SELECT q.id, q.token, q.attempts, "
          "q.processing_started_at, coalesce(q.lease_until, {now:10}), q.owner, 4, NULL "
          "FROM p JOIN {queue} AS q ON q.ctid = p.place WHERE p.abandoned "
          "AND (NOT p.suspect OR p.quarantine OR p.number <= $6::bigint) ON CONFLICT DO NOTHING) "
          "UPDATE {queue} AS t SET {claim:10} FROM p WHERE t.ctid = p.place "
          "AND (NOT p.suspect OR p.quarantine OR p.number <= $6::bigint) RETURNING {row}, p.seen_at")),
      probe(Texts(schema)("SELECT clock_timestamp(), EXISTS (SELECT 1 FROM {queue} "
                          "WHERE ordering_key IS NOT NULL AND quarantined_at IS NULL), clock_timestamp()")),
      clock(Texts(schema)("SELECT clock_timestamp()")),

      // From key to key: each step jumps behind the last row that the key before could have.
      walk(Texts(schema)(
          "WITH RECURSIVE walk AS ((SELECT q.ordering_key, q.id, {free:5} AND {other_than:6} AS free, 1 AS "
          "number "
          "FROM {queue} AS q WHERE q.ordering_key IS NOT NULL AND q.quarantined_at IS NULL "
          "AND (q.ordering_key, q.id) > ($1::text, $2::bigint) AND q.ordering_key <= $3::text "
          "ORDER BY q.ordering_key, q.id LIMIT 1) "
          "UNION ALL SELECT x.ordering_key, x.id, x.free, w.number + 1 FROM walk AS w CROSS JOIN LATERAL "
          "(SELECT q.ordering_key, q.id, {free:5} AND {other_than:6} AS free FROM {queue} AS q "
          "WHERE q.ordering_key IS NOT NULL AND q.quarantined_at IS NULL "
          "AND (q.ordering_key, q.id) > (w.ordering_key, 9223372036854775807) AND q.ordering_key <= $3::text "
          "ORDER BY q.ordering_key, q.id LIMIT 1) AS x WHERE w.number < $4::bigint) "
          "SELECT ordering_key, id, free FROM walk")),
      // By id: SKIP LOCKED over a scan of the key would skip a locked head and return the row behind it.
      lock_heads(Texts(schema)(
          "SELECT u.place, x.abandoned, x.crashes FROM unnest($1::bigint[]) WITH ORDINALITY AS u(id, place) "
          "CROSS JOIN LATERAL (SELECT q.status = 1 AS abandoned, q.crashes FROM {queue} AS q "
          "WHERE q.id = u.id AND q.quarantined_at IS NULL AND {free:2} AND {other_than:3} FOR UPDATE SKIP "
          "LOCKED) AS x")),
      // `number` counts the rows behind the head before any is skipped: a gap in it shows a row that is not
      // free, or that could not be locked.
      lock_followers(Texts(schema)(
          "SELECT u.place, m.number, m.id, x.abandoned, x.crashes "
          "FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS u(key, head, place) "
          "CROSS JOIN LATERAL (SELECT n.id, row_number() OVER (ROWS UNBOUNDED PRECEDING) AS number FROM "
          "(SELECT q.id FROM {queue} AS q WHERE q.ordering_key = u.key AND q.quarantined_at IS NULL "
          "AND q.id > u.head ORDER BY q.id LIMIT $3::bigint) AS n) AS m "
          "CROSS JOIN LATERAL (SELECT q.status = 1 AS abandoned, q.crashes FROM {queue} AS q "
          "WHERE q.id = m.id AND q.quarantined_at IS NULL AND {free:4} AND {other_than:5} FOR UPDATE SKIP "
          "LOCKED) AS x")),
      take(
          Texts(schema)("UPDATE {queue} AS t SET {claim:6} "
                        "FROM unnest($3::bigint[], $4::boolean[], $5::boolean[]) WITH ORDINALITY "
                        "AS p(id, abandoned, quarantine, place) WHERE t.id = p.id RETURNING {row}, p.place")),

      // A row that is locked is not waited for, because others of the batch would lose their leases
      // meanwhile: it is the handler's own transaction that has locked it, and while it is locked nobody can
      // claim it either.
      renew(Texts(schema)(
          "WITH held AS MATERIALIZED (SELECT u.place, q.id FROM unnest($1::bigint[], $2::bigint[]) WITH "
          "ORDINALITY AS u(id, token, place) JOIN {queue} AS q ON q.id = u.id AND q.token = u.token "
          "AND q.status = 1), "
          "mine AS MATERIALIZED (SELECT x.ctid AS place FROM unnest($1::bigint[], $2::bigint[]) AS u(id, "
          "token) CROSS JOIN LATERAL (SELECT q.ctid FROM {queue} AS q WHERE q.id = u.id "
          "AND q.token = u.token AND q.status = 1 FOR UPDATE SKIP LOCKED) AS x), "
          "renewed AS (UPDATE {queue} AS t SET lease_until = {now:4} + $3::interval, updated_at = {now:4} "
          "FROM mine WHERE t.ctid = mine.place) "
          "SELECT id FROM held ORDER BY place")),

      // All rows are deleted, and thereby locked, before the lock on the numbers is taken: nobody holds that
      // one while waiting for a row.
      finalize(Texts(schema)(
          "WITH {gone}, numbers AS MATERIALIZED (SELECT pg_advisory_xact_lock(CASE WHEN count(*) > 0 "
          "THEN {numbers} END) FROM gone) "
          "{into_log} SELECT {next}, {now:5}, gone.* FROM numbers CROSS JOIN gone RETURNING id")),
      finalize_unnumbered(
          Texts(schema)("WITH {gone} {into_log} SELECT NULL, {now:5}, gone.* FROM gone RETURNING id")),
      retry(Texts(schema)(
          "WITH done AS (UPDATE {queue} AS t SET status = 0, available_at = {now:10} + u.delay, owner = "
          "NULL, "
          "lease_until = NULL, updated_at = {now:10}, last_error = u.error "
          "FROM unnest($1::bigint[], $2::bigint[], $3::interval[], $4::text[]) AS u(id, token, delay, error) "
          "WHERE t.id = u.id AND t.token = u.token AND t.status = 1 RETURNING t.id), "
          "saved AS (INSERT INTO {state} AS x (id, handler, result, failed, error, updated_at) "
          "SELECT s.id, s.handler, s.result, s.failed, s.error, {now:10} FROM unnest($5::bigint[], "
          "$6::text[], $7::smallint[], $8::int[], $9::text[]) AS s(id, handler, result, failed, error) "
          "WHERE s.id IN (SELECT id FROM done) ON CONFLICT (id, handler) DO UPDATE SET {replace} WHERE "
          "x.result <> 0) "
          "SELECT id FROM done")),
      release(Texts(schema)("UPDATE {queue} AS t SET status = 0, attempts = greatest(t.attempts - 1, 0), "
                            "owner = NULL, lease_until = NULL, "
                            "available_at = CASE WHEN u.delay > interval '0' THEN greatest(t.available_at, "
                            "{now:4} + u.delay) ELSE t.available_at END, updated_at = {now:4} "
                            "FROM unnest($1::bigint[], $2::bigint[], $3::interval[]) AS u(id, token, delay) "
                            "WHERE t.id = u.id AND t.token = u.token AND t.status = 1 RETURNING t.id")),
      log_crashes(Texts(schema)(
          "INSERT INTO {attempts} ({attempt_columns}) SELECT q.id, q.token, q.attempts, "
          "q.processing_started_at, coalesce(q.lease_until, {now:2}), q.owner, 4, NULL FROM {queue} AS q "
          "WHERE q.id = ANY($1::bigint[]) AND q.status = 1 ON CONFLICT DO NOTHING")),
      // Before the rows are changed. Of those alone that are still held, and stay so until the commit.
      log_attempts(Texts(schema)(
          "WITH held AS MATERIALIZED (SELECT q.id, q.token, q.attempts, q.processing_started_at, q.owner, "
          "u.outcome, u.error FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[]) "
          "AS u(id, token, outcome, error) JOIN {queue} AS q ON q.id = u.id AND q.token = u.token "
          "WHERE q.status = 1 FOR UPDATE OF q) "
          "INSERT INTO {attempts} ({attempt_columns}) SELECT id, token, attempts, processing_started_at, "
          "{now:5}, owner, outcome, error FROM held ON CONFLICT DO NOTHING")),
      trim_attempts(Texts(schema)(
          "DELETE FROM {attempts} AS a USING unnest($1::bigint[]) AS u(id) WHERE a.id = u.id AND a.token <= "
          "(SELECT token FROM {attempts} WHERE id = u.id ORDER BY token DESC OFFSET {kept} LIMIT 1)")),
      lock_idle(Texts(schema)(
          "SELECT x.id FROM unnest($1::bigint[]) AS u(id) CROSS JOIN LATERAL (SELECT q.id FROM {queue} AS q "
          "WHERE q.id = u.id FOR UPDATE SKIP LOCKED) AS x")),
      // 1 this claim has finalised it, 2 this claim has given it back, 3 somebody else has it or had it, 4 it
      // is still this claim's: its row was locked.
      classify(Texts(schema)(
          "SELECT u.place, (CASE WHEN l.token = u.token THEN 1 WHEN q.token = u.token AND q.status = 0 THEN "
          "2 WHEN q.token = u.token THEN 4 WHEN l.id IS NOT NULL OR q.id IS NOT NULL THEN 3 ELSE 0 "
          "END)::bigint "
          "FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS u(id, token, place) "
          "LEFT JOIN {log} AS l ON l.id = u.id LEFT JOIN {queue} AS q ON q.id = u.id")),

      save_states(Texts(schema)(
          "WITH held AS MATERIALIZED (SELECT q.id FROM {queue} AS q WHERE q.id = $1::bigint "
          "AND q.token = $2::bigint AND q.status = 1 FOR UPDATE), "
          "saved AS (INSERT INTO {state} AS x (id, handler, result, failed, error, updated_at) "
          "SELECT held.id, s.handler, s.result, s.failed, s.error, {now:7} FROM held CROSS JOIN "
          "unnest($3::text[], $4::smallint[], $5::int[], $6::text[]) AS s(handler, result, failed, error) "
          "ON CONFLICT (id, handler) DO UPDATE SET {replace} WHERE x.result <> 0) "
          "SELECT id FROM held")),
      load_states(Texts(schema)(
          "SELECT s.id, s.handler, s.result::int, s.failed, s.error FROM unnest($1::bigint[]) AS u(id) "
          "JOIN {state} AS s ON s.id = u.id")),
      done_states(
          Texts(schema)("SELECT s.handler FROM {state} AS s WHERE s.id = $1::bigint AND s.result = 0")),
      clean_states(
          Texts(schema)("DELETE FROM {state} WHERE ctid = ANY (ARRAY(SELECT s.ctid FROM {state} AS s "
                        "WHERE NOT EXISTS (SELECT 1 FROM {queue} AS q WHERE q.id = s.id) LIMIT $1::bigint "
                        "FOR UPDATE SKIP LOCKED))")),

      any_unnumbered(Texts(schema)("SELECT EXISTS (SELECT 1 FROM {log} WHERE seq IS NULL)")),
      // A statement of its own, so that the next one sees what was committed while this one waited. From here
      // on no row lock is waited for long.
      lock_numbers(Texts(schema)(
          "SELECT set_config('lock_timeout', '250ms', true) FROM pg_advisory_xact_lock({numbers})")),
      number_log(
          Texts(schema)("UPDATE {log} AS t SET seq = {next} FROM (SELECT id FROM {log} WHERE seq IS NULL "
                        "ORDER BY id LIMIT $1::bigint) AS u WHERE t.id = u.id")) {}

}  // namespace postrider::postgres
