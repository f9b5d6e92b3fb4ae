// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_log_store.hpp"

#include <algorithm>
#include <utility>

#include "postrider/error.hpp"
#include "storage/attempts.hpp"
#include "storage/handler_results.hpp"
#include "storage/sql_event_columns.hpp"
#include "storage/sql_tables.hpp"

namespace postrider {
namespace {

constexpr std::size_t max_filter_values = 10'000;
// A filter that matches little must not make one call walk the whole log.
constexpr std::size_t window_rows = 10'000;
// What one page may hold: about this much payload. Rows come in chunks, because their size is not known
// before they are read; a payload has at most 1 MiB.
constexpr std::size_t log_page_bytes = 16U << 20U;
constexpr std::size_t first_log_chunk = 100;
constexpr std::size_t largest_log_chunk = 500;

std::string log_columns(const SqlDialect& dialect) {
  return event_columns(dialect) + ", seq, id, status, attempts, crashes, " +
         around(dialect.to_micros, "processing_started_at") + ", " +
         around(dialect.to_micros, "finalized_at") + ", results";
}

LogEntry to_entry(const std::vector<Rows::Cell>& row) {
  const EventCells cells(row);
  DecodedEvent decoded = decode_event(cells.columns());
  const auto* cell = row.data() + event_column_count;
  LogEntry entry;
  entry.event = std::move(decoded.event);
  entry.decode_error = std::move(decoded.error);
  entry.created_at = cells.columns().created_at;
  entry.seq = LogSeq{number(cell[0])};
  entry.id = QueueId{number(cell[1])};
  entry.status = static_cast<QueueStatus>(number(cell[2]));
  entry.attempts = static_cast<std::int32_t>(number(cell[3]));
  entry.crashes = static_cast<std::int32_t>(number(cell[4]));
  entry.processing_started_at = time_of(cell[5]);
  entry.finalized_at = time_of(cell[6]);
  if (cell[7].has_value()) entry.results = decode_results(*cell[7]);
  return entry;
}

std::size_t size_of(const LogEntry& entry) {
  return entry.event.has_value() ? entry.event->payload().size() + entry.event->headers_json().size() : 0;
}

}  // namespace

SqlLogStore::SqlLogStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

std::optional<LogSeq> SqlLogStore::window_end(LogSeq from, Way way, std::size_t rows) {
  const bool up = way == Way::up;
  SqlQuery query(dialect_);
  query.sql(up ? "select max(seq)" : "select min(seq)").sql(" from (select seq from ").table(log_table);
  query.sql(up ? " where seq > " : " where seq < ").bind(plain(from));
  query.sql(up ? " order by seq limit " : " order by seq desc limit ").bind_limit(rows).sql(") as ahead");
  const Rows answer = query.run();
  if (answer.is_null(0, 0)) return std::nullopt;
  return LogSeq{answer.integer(0, 0)};
}

LogPage SqlLogStore::read(LogSeq after, std::size_t limit, const LogFilter& filter) {
  return walk(after, Way::up, limit, filter);
}

LogPage SqlLogStore::read_back(LogSeq before, std::size_t limit, const LogFilter& filter) {
  LogPage page = walk(before, Way::down, limit, filter);
  if (limit == 0) return page;
  // A page that is full may end with the lowest entry, which need not be the first: the log is purged.
  const bool more = page.scanned_to != before && window_end(page.scanned_to, Way::down, 1).has_value();
  if (!more) page.scanned_to = LogSeq{};
  return page;
}

LogPage SqlLogStore::walk(LogSeq from, Way way, std::size_t limit, const LogFilter& filter) {
  if (filter.types.size() + filter.statuses.size() + filter.event_ids.size() > max_filter_values) {
    throw Error(ErrorCode::invalid_argument, "a log filter has too many values",
                "at most " + std::to_string(max_filter_values) + " are taken");
  }
  LogPage page{.entries = {}, .scanned_to = from};
  const bool up = way == Way::up;
  if (limit == 0) return page;
  // Sequence numbers are given in commit order, so whatever is below the end of the window is visible by now.
  std::optional<LogSeq> end;
  const bool filtered = filter.statuses.is_set() || filter.types.is_set() || filter.event_ids.is_set();
  if (filtered) {
    end = window_end(from, way, std::max(limit, window_rows));
    if (!end.has_value()) return page;
  }
  std::size_t bytes = 0;
  std::size_t chunk = std::min(limit, first_log_chunk);
  for (;;) {
    SqlQuery query(dialect_);
    query.sql("select ").sql(log_columns(dialect_)).sql(" from ").table(log_table);
    query.sql(up ? " where seq > " : " where seq < ").bind(plain(page.scanned_to));
    if (end.has_value()) query.sql(up ? " and seq <= " : " and seq >= ").bind(plain(*end));
    query.and_in("status", filter.statuses,
                 [](QueueStatus status) { return static_cast<std::int64_t>(status); });
    query.and_in("event_type", filter.types, [](const std::string& type) { return std::string_view(type); });
    query.and_in("event_id", filter.event_ids, [](const EventId& id) { return id.view(); });
    query.sql(up ? " order by seq limit " : " order by seq desc limit ");
    const Rows rows = query.bind_limit(chunk).run();
    for (const auto& row : rows.rows) {
      page.entries.push_back(to_entry(row));
      bytes += size_of(page.entries.back());
    }
    if (!rows.empty()) page.scanned_to = page.entries.back().seq;
    if (rows.size() < chunk) {
      page.scanned_to = end.value_or(page.scanned_to);
      return page;
    }
    if (page.entries.size() >= limit || bytes >= log_page_bytes) return page;
    const std::size_t average = bytes / page.entries.size() + 1;
    chunk =
        std::min({limit - page.entries.size(), largest_log_chunk, (log_page_bytes - bytes) / average + 1});
  }
}

LogSeq SqlLogStore::head() {
  SqlQuery query(dialect_);
  return LogSeq{number(query.sql("select max(seq) from ").table(log_table).run().rows.at(0).at(0))};
}

std::optional<LogEntry> SqlLogStore::find(QueueId id) {
  SqlQuery query(dialect_);
  query.sql("select ").sql(log_columns(dialect_)).sql(" from ").table(log_table).sql(" where id = ");
  const Rows rows = query.bind(static_cast<std::int64_t>(id)).run();
  if (rows.empty()) return std::nullopt;
  LogEntry entry = to_entry(rows.rows.front());
  entry.history = attempts(id);
  return entry;
}

std::vector<FailedAttempt> SqlLogStore::attempts(QueueId id) {
  return queue_attempts(dialect_, id);
}

}  // namespace postrider
