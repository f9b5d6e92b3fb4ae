// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/stream_sql.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace postrider::postgres {
namespace {

std::string replaced(std::string_view text, std::string_view mark, std::string_view by) {
  std::string result;
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark)) {
    result.append(text.substr(0, at)).append(by);
    text.remove_prefix(at + mark.size());
  }
  return result.append(text);
}

/// `{s}` is the schema. With a direction, `{reach}` is how far the sample of a hash goes.
std::string in_schema(const Identifier& schema, std::string_view text) {
  return replaced(text, "{s}", schema.str());
}
std::string directed(std::string_view text, bool backwards) {
  const std::string turned = replaced(text, "{dir}", backwards ? "DESC" : "ASC");
  return replaced(replaced(turned, "{reach}", backwards ? "min" : "max"), "{rarer}",
                  backwards ? "ASC" : "DESC");
}

/// The entries of event_tags for one group: all its hashes stand there, between `{after}` and `{until}`.
///
/// It walks along one of the hashes, the rarest; which one that is, is judged by the first 64 entries of
/// each: whoever has fewer, or whose 64 reach further, is rarer. `c` has the group's places in `{hashes}`.
constexpr std::string_view group_hits =
    "CROSS JOIN LATERAL (SELECT CASE WHEN c.first = c.last THEN ({hashes})[c.first] ELSE "
    "(SELECT k.hash FROM unnest(({hashes})[c.first:c.last]) AS k(hash) CROSS JOIN LATERAL "
    "(SELECT count(*) AS n, {reach}(s.position) AS reach FROM (SELECT t.position FROM {s}.event_tags AS t "
    "WHERE t.hash = k.hash AND t.position > {after} AND t.position <= {until} "
    "ORDER BY t.position {dir} LIMIT 64) AS s) AS r ORDER BY r.n, r.reach {rarer} LIMIT 1) END AS hash "
    "OFFSET 0) AS d CROSS JOIN LATERAL (SELECT t.position FROM {s}.event_tags AS t "
    "WHERE t.hash = d.hash AND t.position > {after} AND t.position <= {until} "
    "AND (c.first = c.last OR NOT EXISTS (SELECT FROM unnest(({hashes})[c.first:c.last]) AS o(hash) "
    "WHERE o.hash <> d.hash AND NOT EXISTS "
    "(SELECT FROM {s}.event_tags AS x WHERE x.hash = o.hash AND x.position = t.position))) "
    "ORDER BY t.position {dir} LIMIT {limit}) AS h ";

std::string group_hits_for(std::string_view hashes, std::string_view after, std::string_view until,
                           std::string_view limit) {
  std::string text = replaced(group_hits, "{hashes}", hashes);
  text = replaced(text, "{after}", after);
  text = replaced(text, "{until}", until);
  return replaced(text, "{limit}", limit);
}

/// The page of the candidates in `{from}`, cut behind the row that reaches the number of bytes in `{bytes}`.
/// Sizes stand in the row, so that nothing long is read in vain. The head is of the same snapshot.
constexpr std::string_view page =
    "SELECT head.last, p.position, p.event_id, p.type, p.tags, p.data, p.data_bytes, p.metadata, "
    "p.correlation_id, p.causation_id, p.occurred_at, p.stored_at, p.size FROM "
    "(SELECT coalesce(max(position), 0) AS last FROM {s}.events) AS head LEFT JOIN LATERAL "
    "(SELECT * FROM (SELECT e.*, sum(e.size) OVER (ORDER BY e.position {dir} ROWS UNBOUNDED PRECEDING) - "
    "e.size AS before FROM {from} AS e) AS sized WHERE before < {bytes}) AS p ON true";

Statement read_all_statement(const Identifier& schema, bool backwards) {
  const std::string text =
      replaced(replaced(page, "{from}",
                        "(SELECT * FROM {s}.events WHERE position > $1::bigint AND position <= $2::bigint "
                        "ORDER BY position {dir} LIMIT $3::bigint)"),
               "{bytes}", "$4::bigint");
  return Statement(in_schema(schema, directed(text, backwards)));
}

Statement read_groups_statement(const Identifier& schema, bool backwards) {
  const std::string candidates =
      "(SELECT e.* FROM (SELECT DISTINCT h.position FROM unnest($5::int4[], $6::int4[]) AS c(first, last) " +
      group_hits_for("$7::bigint[]", "$1::bigint", "$2::bigint", "$3::bigint") +
      "ORDER BY h.position {dir} LIMIT $3::bigint) AS found JOIN {s}.events AS e USING (position))";
  const std::string text = replaced(replaced(page, "{from}", candidates), "{bytes}", "$4::bigint");
  return Statement(in_schema(schema, directed(text, backwards)));
}

Statement read_at_statement(const Identifier& schema) {
  const std::string text =
      replaced(replaced(page, "{from}", "(SELECT * FROM {s}.events WHERE position = ANY ($2::bigint[]))"),
               "{bytes}", "$1::bigint");
  return Statement(in_schema(schema, directed(text, false)));
}

/// At least one: zero would mean for ever.
std::string milliseconds(Duration time) {
  return std::to_string(
      std::max<std::int64_t>(std::chrono::floor<std::chrono::milliseconds>(time).count(), 1));
}

std::string lock_key(const Identifier& schema) {
  return "hashtextextended('postrider events of " + schema.str() + "', 0)";
}

}  // namespace

StreamSql::StreamSql(const Identifier& schema, Duration lock_timeout)
    : lock(settings_statement.sql + ", set_config('lock_timeout', '" + milliseconds(lock_timeout) +
           "', true), pg_advisory_xact_lock(" + lock_key(schema) + ")"),
      // The lock's function is strict: without a key it does nothing.
      lock_if_read_committed("SELECT i.level, pg_advisory_xact_lock(CASE WHEN i.level LIKE 'read %' THEN " +
                             lock_key(schema) +
                             " END) FROM (SELECT current_setting('transaction_isolation') AS level) AS i"),
      head(in_schema(schema, "SELECT position, type FROM {s}.events ORDER BY position DESC LIMIT 1")),
      probe_one(in_schema(
          schema,
          "SELECT c.n, h.position, e.type, e.tags FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) "
          "WITH ORDINALITY AS c(hash, after, until, n) CROSS JOIN LATERAL (SELECT t.position FROM "
          "{s}.event_tags AS t WHERE t.hash = c.hash AND t.position > c.after AND t.position <= c.until "
          "ORDER BY t.position DESC LIMIT 1) AS h JOIN {s}.events AS e ON e.position = h.position")),
      probe_groups(in_schema(
          schema, directed("SELECT c.n, h.position, e.type, e.tags FROM unnest($1::int4[], $2::int4[], "
                           "$3::bigint[], $4::bigint[]) WITH ORDINALITY AS c(first, last, after, until, n) " +
                               group_hits_for("$5::bigint[]", "c.after", "c.until", "1") +
                               "JOIN {s}.events AS e ON e.position = h.position",
                           true))),
      insert_events(
          in_schema(schema,
                    "INSERT INTO {s}.events (position, event_id, type, tags, data, data_bytes, metadata, "
                    "correlation_id, causation_id, occurred_at, size, stored_at) SELECT u.*, "
                    "coalesce($12::timestamptz, statement_timestamp()) FROM unnest($1::bigint[], $2::text[], "
                    "$3::text[], $4::text[], $5::json[], $6::bytea[], $7::json[], $8::text[], $9::text[], "
                    "$10::timestamptz[], $11::int4[]) AS u")),
      insert_tags(in_schema(schema,
                            "INSERT INTO {s}.event_tags (hash, position) SELECT u.* FROM "
                            "unnest($1::bigint[], $2::bigint[]) AS u")),
      read_all(read_all_statement(schema, false)),
      read_all_backwards(read_all_statement(schema, true)),
      read_groups(read_groups_statement(schema, false)),
      read_groups_backwards(read_groups_statement(schema, true)),
      read_at(read_at_statement(schema)) {}

}  // namespace postrider::postgres
