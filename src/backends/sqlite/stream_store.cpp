// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/stream_store.hpp"

#include <algorithm>
#include <utility>

#include "backends/sqlite/event_columns.hpp"
#include "backends/sqlite/migration_target.hpp"
#include "backends/sqlite/storage.hpp"
#include "backends/sqlite/user_transaction.hpp"
#include "core/failpoint.hpp"
#include "storage/migrator.hpp"
#include "storage/stream_page.hpp"

namespace postrider::sqlite {
namespace {

constexpr std::string_view columns =
    "position, event_id, type, tags, data, data_bytes, metadata, correlation_id, causation_id, occurred_at, "
    "stored_at, size";
constexpr int size_column = 11;

StreamColumns columns_of(const Statement& row) {
  const bool bytes = row.is_null(4);
  return {.position = row.integer(0),
          .event_id = row.text(1),
          .type = row.text(2),
          .tags = row.text(3),
          .data_kind = bytes ? PayloadKind::bytes : PayloadKind::json,
          .data = bytes ? row.blob(5) : row.text(4),
          .metadata = row.text(6),
          .correlation_id = row.text(7),
          .causation_id = row.text(8),
          .occurred_at = TimePoint(Duration(row.integer(9))),
          .stored_at = TimePoint(Duration(row.integer(10)))};
}

std::string with_table(std::string text, std::string_view table) {
  constexpr std::string_view mark = "{tags}";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
    text.replace(at, mark.size(), table);
  }
  return text;
}

}  // namespace

SqliteStreamStore::SqliteStreamStore(const Identifier& schema, std::string storage_name, Clock& clock,
                                     StreamKeys keys, Writer& writer, ConnectionPool& readers)
    : schema_(schema),
      storage_name_(std::move(storage_name)),
      events_(schema.str() + "_events"),
      tags_(schema.str() + "_event_tags"),
      lock_("delete from " + events_ + " where position = 0"),
      head_("select position, type from " + events_ + " order by position desc limit 1"),
      type_and_tags_("select type, tags from " + events_ + " where position = ?"),
      insert_event_("insert into " + events_ +
                    " (position, event_id, type, tags, metadata, correlation_id, causation_id, occurred_at, "
                    "stored_at, size, data, data_bytes) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      insert_tag_("insert into " + tags_ + " (hash, position) values (?, ?)"),
      clock_(clock),
      keys_(keys),
      writer_(writer),
      readers_(readers),
      file_(writer.acquire().connection().file()) {}

std::vector<AppendVerdict> SqliteStreamStore::append(std::span<const AppendRequest> requests) {
  return flush_or_part(requests, [&](std::span<const AppendRequest> part) {
    const Writer::Lease lease = writer_.acquire();
    WriteTransaction transaction(lease.connection());
    std::vector<AppendVerdict> verdicts = append_in(lease.connection(), part);
    if (std::any_of(verdicts.begin(), verdicts.end(),
                    [](const AppendVerdict& one) { return std::holds_alternative<Appended>(one); })) {
      failpoint("sqlite.stream.before_commit");
      transaction.commit();
      failpoint("sqlite.stream.after_commit");
    }
    return verdicts;
  });
}

AppendVerdict SqliteStreamStore::append(Tx& tx, const AppendRequest& request) {
  Connection& connection = connection_of(tx, file_, "cannot append to " + storage_name_);
  // A transaction of the user's may only have read so far: whoever writes has the lock, even if it is nothing
  // that he writes. If something was committed after its snapshot, SQLite refuses right here.
  connection.run(lock_);
  Savepoint savepoint(connection);
  AppendVerdict verdict = std::move(append_in(connection, {&request, 1}).front());
  savepoint.release();
  if (const auto* refused = std::get_if<std::exception_ptr>(&verdict)) std::rethrow_exception(*refused);
  return verdict;
}

std::vector<AppendVerdict> SqliteStreamStore::append_in(Connection& connection,
                                                        std::span<const AppendRequest> requests) {
  StreamFlush flush(requests, keys_);
  do {
    for (std::size_t i = 0; i < flush.probes().size(); ++i) {
      const StreamProbe probe = flush.probes()[i];
      const std::vector<std::int64_t> hit =
          find(connection, *probe.hashes,
               {.after = probe.after, .until = probe.until, .limit = 1, .backwards = true});
      if (hit.empty()) continue;
      Statement event = connection.prepare(type_and_tags_);
      if (event.with(hit.front()).step()) flush.found(i, hit.front(), event.text(0), event.text(1));
    }
  } while (flush.next_round());
  flush.decide(head_of(connection));
  insert(connection, flush.rows());
  return std::move(flush).verdicts();
}

void SqliteStreamStore::insert(Connection& connection, std::span<const NewStreamRow> rows) {
  if (rows.empty()) return;
  const std::int64_t now = micros(clock_.now());
  Statement event = connection.prepare(insert_event_);
  Statement tag = connection.prepare(insert_tag_);
  for (const NewStreamRow& row : rows) {
    const bool json = row.event->payload_kind() == PayloadKind::json;
    event
        .with(row.position, row.event->id().view(), row.event->type(), row.tags,
              text_or_null(row.event->headers_json()), text_or_null(row.append->correlation_id()),
              text_or_null(row.append->causation_id()), micros(row.event->occurred_at()), now, row.size(),
              json ? Value(row.event->payload()) : Value(nullptr),
              json ? Value(nullptr) : Value(Blob{row.event->payload()}))
        .run();
    event.reset();
    for (const std::int64_t hash : row.hashes) {
      tag.with(hash, row.position).run();
      tag.reset();
    }
  }
}

StreamHead SqliteStreamStore::head_of(Connection& connection) {
  Statement statement = connection.prepare(head_);
  if (!statement.step()) return {};
  return {.position = statement.integer(0), .type = std::string(statement.text(1))};
}

std::vector<std::int64_t> SqliteStreamStore::find(Connection& connection, const KeyGroup& group,
                                                  const StreamRange& range) {
  KeyGroup hashes = group;
  if (group.size() > 1) {
    std::vector<StreamSample> samples;
    samples.reserve(group.size());
    for (const std::int64_t hash : group) samples.push_back(sample(connection, hash, range));
    hashes = rarest_first(group, samples, range.backwards);
  }
  Statement statement =
      connection.prepare(with_table(group_text(hashes.size(), range.backwards, "cross join"), tags_));
  int place = 0;
  for (std::size_t i = 1; i < hashes.size(); ++i) statement.bind(++place, hashes[i]);
  statement.bind(++place, hashes.front());
  statement.bind(++place, range.after);
  statement.bind(++place, range.until);
  statement.bind(++place, range.limit);
  std::vector<std::int64_t> positions;
  while (statement.step()) positions.push_back(statement.integer(0));
  return positions;
}

StreamSample SqliteStreamStore::sample(Connection& connection, std::int64_t hash, const StreamRange& range) {
  Statement statement = connection.prepare(with_table(group_text(1, range.backwards, {}), tags_));
  statement.with(hash, range.after, range.until, stream_sample);
  StreamSample found;
  while (statement.step()) {
    ++found.count;
    found.reach = statement.integer(0);
  }
  return found;
}

ReadPage SqliteStreamStore::read(const ReadRequest& request) {
  StreamPage page(request);
  const ConnectionPool::Lease lease = readers_.acquire();
  Connection& connection = connection_of(lease);
  // Positions are in commit order: whatever is up to the head is visible from now on, and stays as it is. So
  // all statements that end there read one snapshot.
  const std::int64_t head = head_of(connection).position;
  page.set_head(head);
  const std::int64_t until = std::min(page.until(), head);
  const std::string select = "select " + std::string(columns) + " from " + events_ + " where ";
  if (page.all()) {
    Statement rows = connection.prepare(select + "position > ? and position <= ? order by position " +
                                        (request.backwards ? "desc" : "asc") + " limit ?");
    rows.with(page.after(), until, page.limit());
    while (!page.full() && rows.step()) page.add(columns_of(rows), rows.integer(size_column));
    return std::move(page).finish();
  }
  const std::vector<std::int64_t> positions = merged_positions(
      keys_.of_query(*request.query),
      {.after = page.after(),
       .until = until,
       .limit = static_cast<std::size_t>(page.limit()),
       .backwards = request.backwards},
      [&](const KeyGroup& group, const StreamRange& range) { return find(connection, group, range); });
  Statement row = connection.prepare(select + "position = ?");
  for (const std::int64_t position : positions) {
    if (page.full()) break;
    if (row.with(position).step()) page.add(columns_of(row), row.integer(size_column));
    row.reset();
  }
  return std::move(page).finish();
}

ReadPage SqliteStreamStore::read_at(std::span<const Position> positions, std::size_t max_bytes) {
  const ReadRequest request = request_at(positions, max_bytes);
  StreamPage page(request);
  const ConnectionPool::Lease lease = readers_.acquire();
  Connection& connection = connection_of(lease);
  page.set_head(head_of(connection).position);
  Statement row =
      connection.prepare("select " + std::string(columns) + " from " + events_ + " where position = ?");
  for (const Position position : positions) {
    if (page.full()) break;
    if (row.with(static_cast<std::int64_t>(position)).step()) {
      page.add(columns_of(row), row.integer(size_column));
    }
    row.reset();
  }
  return std::move(page).finish();
}

Position SqliteStreamStore::head() {
  const ConnectionPool::Lease lease = readers_.acquire();
  return Position{head_of(connection_of(lease)).position};
}

void SqliteStreamStore::check_schema() {
  const ConnectionPool::Lease lease = readers_.acquire();
  SqliteMigrationTarget target(connection_of(lease), schema_, clock_);
  require_current_schema(embedded_migrations(), target.applied(), storage_name_);
}

}  // namespace postrider::sqlite
