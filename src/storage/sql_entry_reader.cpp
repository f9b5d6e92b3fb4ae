// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_entry_reader.hpp"

#include <algorithm>
#include <utility>

#include "core/utf8.hpp"
#include "storage/sql_tables.hpp"

namespace postrider {
namespace {

constexpr std::string_view words_table = "event_log_words";
constexpr std::string_view correlation_column = "e.correlation_id";
constexpr std::string_view application_column = "e.application_id";
// What one page may hold: about this much. Rows come in chunks, because their size is not known before they
// are read.
constexpr std::size_t entry_page_bytes = 4U << 20U;
constexpr std::size_t first_entry_chunk = 100;
constexpr std::size_t largest_entry_chunk = 1000;

std::string entry_columns(const SqlDialect& dialect) {
  return "e.id, e.application_id, e.correlation_id, e.process_name, e.process_status, e.step, e.details, "
         "e.target_system, e.originating_system, e.user_id, e.idempotency_key, e.extras, " +
         around(dialect.to_micros, "e.occurred_at") + ", " + around(dialect.to_micros, "e.received_at");
}

StoredEntry to_entry(std::vector<Rows::Cell>& row) {
  const auto take = [&](std::size_t column) { return std::move(row[column]).value_or(std::string()); };
  StoredEntry stored;
  stored.id = EntryId{number(row[0])};
  stored.entry.application_id = take(1);
  stored.entry.correlation_id = take(2);
  stored.entry.process_name = take(3);
  stored.entry.process_status = take(4);
  stored.entry.step = take(5);
  stored.entry.details = take(6);
  stored.entry.target_system = take(7);
  stored.entry.originating_system = take(8);
  stored.entry.user_id = take(9);
  stored.entry.idempotency_key = take(10);
  stored.entry.extras = take(11);
  stored.entry.occurred_at = time_of(row[12]);
  stored.received_at = time_of(row[13]);
  return stored;
}

/// The index whose order is the page's, named where the database takes such advice: a planner without
/// statistics might prefer to sort.
std::string_view index_of(const EntryQuery& query) {
  if (query.correlation_id.has_value()) return "event_log_entries_correlation";
  if (query.application_id.has_value()) return "event_log_entries_application";
  return "event_log_entries_time";
}

/// What stands before the time in a range of PostgreSQL's, which takes no advice about indexes: asked for one
/// application in order of time, it may walk through all entries in order of time instead, which never ends
/// for an application that fell silent long ago. A range of (application, time, id), in that order, only that
/// application's index can answer.
struct Leading {
  std::string_view column{};
  const std::string* value = nullptr;
};
Leading leading_of(BackendKind kind, const EntryQuery& query) {
  if (kind != BackendKind::postgres) return {};
  if (query.correlation_id.has_value()) return {correlation_column, &*query.correlation_id};
  if (query.application_id.has_value()) return {application_column, &*query.application_id};
  return {};
}

/// Exact for all years: PostgreSQL multiplies intervals in floating point, which has no room for the
/// microseconds of eight thousand years.
SqlQuery& bind_exactly(SqlQuery& sql, BackendKind kind, TimePoint time) {
  if (kind != BackendKind::postgres) return sql.bind_time(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  sql.sql("(timestamptz 'epoch' + ").bind(std::int64_t{seconds.time_since_epoch().count()});
  sql.sql("::bigint * interval '1 second' + ").bind(std::int64_t{(time - seconds).count()});
  return sql.sql("::bigint * interval '1 microsecond')");
}

bool is_indexed(const std::string& word) {
  return utf8_length(word).value_or(0) >= least_indexed_word;
}

}  // namespace

SqlEntryReader::SqlEntryReader(SqlDialect dialect) : dialect_(std::move(dialect)) {}

void SqlEntryReader::add_words(SqlQuery& sql, const std::vector<std::string>& words,
                               std::vector<std::string>& texts) const {
  texts.reserve(words.size() + 1);  // the query borrows them
  std::string& all = texts.emplace_back();
  switch (dialect_.kind) {
    case BackendKind::sqlite:
      for (const std::string& word : words) all.append("\"").append(word).append("\" ");
      sql.sql(" and ").table(words_table).sql(" match ").bind(all);
      return;
    case BackendKind::postgres:
      for (const std::string& word : words) all.append(word).append(" ");
      sql.sql(" and ").table(words_table).sql("(e.process_name, e.step, e.details) @@ plainto_tsquery(");
      sql.sql("'simple'::regconfig, ").bind(all).sql(")");
      return;
    case BackendKind::mariadb:
      break;
  }
  for (const std::string& word : words) {
    if (is_indexed(word)) all.append("+").append(word).append(" ");
  }
  sql.sql(" and match (e.words) against (").bind(all).sql(" in boolean mode)");
  for (const std::string& word : words) {
    if (is_indexed(word)) continue;
    sql.sql(" and concat(' ', e.words, ' ') like ").bind(texts.emplace_back("% " + word + " %"));
  }
}

void SqlEntryReader::add_filters(SqlQuery& sql, const EntryQuery& query,
                                 const std::optional<EntryPosition>& after) const {
  const Leading leading = leading_of(dialect_.kind, query);
  if (leading.column != correlation_column) sql.and_equals(correlation_column, query.correlation_id);
  if (leading.column != application_column) sql.and_equals(application_column, query.application_id);
  const auto bound = [&](std::string_view comparison, TimePoint time, const EntryId* id) {
    sql.sql(" and (");
    if (leading.value != nullptr) sql.sql(leading.column).sql(", ");
    sql.sql("e.occurred_at").sql(id != nullptr ? ", e.id)" : ")").sql(comparison).sql("(");
    if (leading.value != nullptr) sql.bind(*leading.value).sql(", ");
    bind_exactly(sql, dialect_.kind, time);
    if (id != nullptr) sql.sql(", ").bind(static_cast<std::int64_t>(*id));
    sql.sql(")");
  };
  if (leading.value != nullptr) {
    sql.sql(" and ").sql(leading.column).sql(" >= ").bind(*leading.value);
    sql.sql(" and ").sql(leading.column).sql(" <= ").bind(*leading.value);
  }
  if (query.from.has_value()) bound(" >= ", *query.from, nullptr);
  if (query.until.has_value()) bound(" < ", *query.until, nullptr);
  if (!after.has_value()) return;
  const std::string_view beyond = query.newest_first ? " < " : " > ";
  if (dialect_.kind != BackendKind::mariadb) {
    bound(beyond, after->occurred_at, &after->id);
    return;
  }
  // Two ranges of the index; MariaDB would compare (a, b) with (c, d) row by row.
  sql.sql(" and ((e.occurred_at = ").bind_time(after->occurred_at).sql(" and e.id").sql(beyond);
  sql.bind(static_cast<std::int64_t>(after->id)).sql(") or e.occurred_at").sql(beyond);
  sql.bind_time(after->occurred_at).sql(")");
}

Rows SqlEntryReader::read(const EntryQuery& query, const std::optional<EntryPosition>& after,
                          std::size_t limit) const {
  std::vector<std::string> texts;
  SqlQuery sql(dialect_);
  sql.sql("select ").sql(entry_columns(dialect_)).sql(" from ");
  const bool by_words = !query.words.empty();
  if (by_words && dialect_.kind == BackendKind::sqlite) {
    sql.table(words_table).sql(" join ").table(entries_table).sql(" as e on e.id = ");
    sql.table(words_table).sql(".rowid");
  } else {
    sql.table(entries_table).sql(" as e");
  }
  if (!by_words && dialect_.kind == BackendKind::sqlite) sql.sql(" indexed by ").table(index_of(query));
  if (!by_words && dialect_.kind == BackendKind::mariadb) {
    sql.sql(" force index (").sql(index_of(query)).sql(")");
  }
  sql.sql(" where 1 = 1");
  add_filters(sql, query, after);
  if (by_words) add_words(sql, query.words, texts);
  const std::string_view direction = query.newest_first ? " desc" : "";
  sql.sql(" order by ");
  if (const Leading leading = leading_of(dialect_.kind, query); leading.value != nullptr) {
    sql.sql(leading.column).sql(direction).sql(", ");
  }
  sql.sql("e.occurred_at").sql(direction).sql(", e.id").sql(direction);
  return sql.sql(" limit ").bind_limit(limit).run();
}

EntryPage SqlEntryReader::find(const EntryQuery& query) const {
  EntryPage page;
  std::optional<EntryPosition> after = query.after;
  std::size_t bytes = 0;
  // One more than asked for tells whether there are more.
  std::size_t chunk = std::min(query.limit + 1, first_entry_chunk);
  while (query.limit > 0) {
    Rows rows = read(query, after, chunk);
    for (auto& row : rows.rows) {
      if (page.entries.size() == query.limit || bytes >= entry_page_bytes) {
        page.more = true;
        return page;
      }
      page.entries.push_back(to_entry(row));
      bytes += page.entries.back().entry.bytes();
    }
    if (rows.size() < chunk) return page;
    const StoredEntry& last = page.entries.back();
    after = EntryPosition{last.entry.occurred_at, last.id};
    const std::size_t average = bytes / page.entries.size() + 1;
    const std::size_t room = bytes < entry_page_bytes ? (entry_page_bytes - bytes) / average : 0;
    chunk = std::min({query.limit + 1 - page.entries.size(), largest_entry_chunk, room + 1});
  }
  return page;
}

std::optional<StoredEntry> SqlEntryReader::get(EntryId id) const {
  SqlQuery sql(dialect_);
  sql.sql("select ")
      .sql(entry_columns(dialect_))
      .sql(" from ")
      .table(entries_table)
      .sql(" as e where e.id = ");
  Rows rows = sql.bind(static_cast<std::int64_t>(id)).run();
  if (rows.empty()) return std::nullopt;
  return to_entry(rows.rows.front());
}

}  // namespace postrider
