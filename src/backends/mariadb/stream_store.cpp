// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/stream_store.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "backends/mariadb/in_list.hpp"
#include "backends/mariadb/lock_wait.hpp"
#include "backends/mariadb/migration_target.hpp"
#include "backends/mariadb/tx_work.hpp"
#include "core/failpoint.hpp"
#include "storage/migrator.hpp"

namespace postrider::mariadb {
namespace {

// MySQL and MariaDB both know this word for it.
constexpr std::string_view with_locks = " LOCK IN SHARE MODE";
constexpr std::size_t probes_at_once = 64;
constexpr std::size_t size_column = 11;

#define POSTRIDER_STREAM_COLUMNS                                                 \
  "position, event_id, type, tags, data, data_bytes, metadata, correlation_id, " \
  "causation_id, " POSTRIDER_MICROS("occurred_at") ", " POSTRIDER_MICROS("stored_at") ", size"

StreamColumns columns_of(const RowView& row) {
  const bool bytes = row.is_null(4);
  return {.position = row.integer(0),
          .event_id = row.text(1),
          .type = row.text(2),
          .tags = row.text(3),
          .data_kind = bytes ? PayloadKind::bytes : PayloadKind::json,
          .data = row.text(bytes ? 5 : 4),
          .metadata = row.text(6),
          .correlation_id = row.text(7),
          .causation_id = row.text(8),
          .occurred_at = TimePoint(Duration(row.integer(9))),
          .stored_at = TimePoint(Duration(row.integer(10)))};
}

/// How many rows go into the next statement: a size of ListSql, and not too many bytes.
std::size_t piece_of(std::span<const NewStreamRow> rows) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < std::min(rows.size(), ListSql::max_size)) {
    bytes += bytes_of(*rows[count].event) + rows[count].tags.size();
    if (count > 0 && bytes > statement_bytes) break;
    ++count;
  }
  return *(std::upper_bound(ListSql::sizes.begin(), ListSql::sizes.end(), count) - 1);
}

}  // namespace

MariadbStreamStore::MariadbStreamStore(const Work& work, const Identifier& schema, Clock* clock,
                                       StreamKeys keys, Duration lock_wait, std::string name)
    : work_(work),
      schema_(schema),
      clock_(clock),
      keys_(keys),
      name_(std::move(name)),
      events_(schema.str() + "_events"),
      tags_(schema.str() + "_event_tags"),
      lock_("SELECT one FROM " + schema.str() + "_event_store_lock WHERE one = 1 FOR UPDATE"),
      lock_wait_(lock_wait),
      bounded_lock_("SET STATEMENT innodb_lock_wait_timeout = " + lock_wait_seconds(lock_wait) + " FOR " +
                    lock_),
      head_("SELECT position, type FROM " + events_ + " ORDER BY position DESC LIMIT 1"),
      type_and_tags_("SELECT type, tags FROM " + events_ + " WHERE position = ?" + std::string(with_locks)),
      probe_one_(
          "{list}",
          "(SELECT ? AS n, t.position, e.type, e.tags FROM " + tags_ + " AS t STRAIGHT_JOIN " + events_ +
              " AS e ON e.position = t.position WHERE t.hash = ? AND t.position > ? AND t.position <= ? "
              "ORDER BY t.position DESC LIMIT 1" +
              std::string(with_locks) + ")",
          " UNION ALL "),
      insert_events_("INSERT INTO " + events_ +
                         " (position, event_id, type, tags, data, data_bytes, metadata, correlation_id, "
                         "causation_id, occurred_at, stored_at, size) VALUES {list}",
                     "(?, ?, ?, ?, ?, ?, ?, ?, ?, " POSTRIDER_AT ", " POSTRIDER_NOW ", ?)"),
      insert_tags_("INSERT INTO " + tags_ + " (hash, position) VALUES {list}", "(?, ?)"),
      by_position_("SELECT " POSTRIDER_STREAM_COLUMNS " FROM " + events_ +
                   " WHERE position IN ({list}) ORDER BY position"),
      by_position_backwards_(by_position_, " DESC") {}

std::vector<AppendVerdict> MariadbStreamStore::append(std::span<const AppendRequest> requests) {
  return flush_or_part(requests, [&](std::span<const AppendRequest> part) {
    std::vector<AppendVerdict> verdicts;
    work_.transaction(
        [&](Link& link) {
          take_lock(link);
          verdicts = append_in(link, part);
        },
        {"mariadb.stream.before_commit", "mariadb.stream.after_commit"});
    return verdicts;
  });
}

AppendVerdict MariadbStreamStore::append(Tx& tx, const AppendRequest& request) {
  Link& link = link_of(tx);
  AppendVerdict verdict;
  whole_or_not(link, true, [&] {
    link.run(lock_, {}, [](const RowView&) {});
    verdict = std::move(append_in(link, {&request, 1}).front());
  });
  if (const auto* refused = std::get_if<std::exception_ptr>(&verdict)) std::rethrow_exception(*refused);
  return verdict;
}

void MariadbStreamStore::take_lock(Link& link) const {
  const auto nothing = [](const RowView&) {};
  try {
    if (link.takes_bulk()) {  // which is how MariaDB shows itself
      link.run(bounded_lock_, {}, nothing);
    } else {
      const ShortLockWait short_wait(link, lock_wait_);  // MySQL cannot say it in one statement
      link.run(lock_, {}, nothing);
    }
  } catch (const Error& error) {
    const bool deadlock = error.sqlstate() == "40001";
    if (error.code() != ErrorCode::contention || deadlock) throw;
    throw append_timeout();
  }
}

std::vector<AppendVerdict> MariadbStreamStore::append_in(Link& link,
                                                         std::span<const AppendRequest> requests) const {
  StreamFlush flush(requests, keys_);
  do ask(link, flush);
  while (flush.next_round());
  flush.decide(head_of(link, with_locks));
  insert(link, flush.rows());
  return std::move(flush).verdicts();
}

void MariadbStreamStore::ask(Link& link, StreamFlush& flush) const {
  const std::vector<StreamProbe>& probes = flush.probes();
  std::vector<std::size_t> single;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (probes[i].hashes->size() == 1) {
      single.push_back(i);
      continue;
    }
    const StreamRange range{
        .after = probes[i].after, .until = probes[i].until, .limit = 1, .backwards = true};
    const std::vector<std::int64_t> hit = find(link, *probes[i].hashes, range, with_locks);
    if (hit.empty()) continue;
    link.run(type_and_tags_, std::array{Value(hit.front())},
             [&](const RowView& row) { flush.found(i, hit.front(), row.text(0), row.text(1)); });
  }
  std::vector<Value> params;
  for (std::span<const std::size_t> rest = single; !rest.empty();) {
    const std::size_t count = std::min(rest.size(), probes_at_once);
    const ListSql::Sized sized = probe_one_.for_count(count);
    params.clear();
    for (std::size_t i = 0; i < sized.places; ++i) {
      const std::size_t place = rest[std::min(i, count - 1)];
      // The places that are left over ask for nothing.
      params.insert(params.end(), {Value(place), Value(probes[place].hashes->front()),
                                   Value(probes[place].after), Value(i < count ? probes[place].until : 0)});
    }
    link.run(sized.sql, params, [&](const RowView& row) {
      flush.found(static_cast<std::size_t>(row.integer(0)), row.integer(1), row.text(2), row.text(3));
    });
    rest = rest.subspan(count);
  }
}

void MariadbStreamStore::insert(Link& link, std::span<const NewStreamRow> rows) const {
  const Value now = clock_ == nullptr ? Value(nullptr) : Value(clock_->now().time_since_epoch().count());
  std::vector<Value> values;
  std::vector<std::pair<std::int64_t, std::int64_t>> tags;
  while (!rows.empty()) {
    const std::size_t count = piece_of(rows);
    values.clear();
    for (const NewStreamRow& row : rows.first(count)) {
      const Event& event = *row.event;
      const bool json = event.payload_kind() == PayloadKind::json;
      values.insert(
          values.end(),
          {Value(row.position), Value(Blob{event.id().view()}), Value(Blob{event.type()}),
           Value(Blob{row.tags}), json ? Value(Blob{event.payload()}) : Value(nullptr),
           json ? Value(nullptr) : Value(Blob{event.payload()}), bytes_or_null(event.headers_json()),
           bytes_or_null(row.append->correlation_id()), bytes_or_null(row.append->causation_id()),
           Value(event.occurred_at().time_since_epoch().count()), now, Value(row.size())});
      for (const std::int64_t hash : row.hashes) tags.emplace_back(hash, row.position);
    }
    link.run(insert_events_.for_count(count).sql, values, {});
    rows = rows.subspan(count);
  }
  for (std::span<const std::pair<std::int64_t, std::int64_t>> rest = tags; !rest.empty();) {
    const std::size_t room = std::min(rest.size(), ListSql::max_size);
    const std::size_t count = *(std::upper_bound(ListSql::sizes.begin(), ListSql::sizes.end(), room) - 1);
    values.clear();
    for (const auto& [hash, position] : rest.first(count)) {
      values.emplace_back(hash);
      values.emplace_back(position);
    }
    link.run(insert_tags_.for_count(count).sql, values, {});
    rest = rest.subspan(count);
  }
}

StreamHead MariadbStreamStore::head_of(Link& link, std::string_view locking) const {
  StreamHead head;
  link.run(head_ + std::string(locking), {}, [&](const RowView& row) {
    head = {.position = row.integer(0), .type = std::string(row.text(1))};
  });
  return head;
}

std::vector<std::int64_t> MariadbStreamStore::find(Link& link, const KeyGroup& group,
                                                   const StreamRange& range, std::string_view locking) const {
  const KeyGroup hashes =
      group.size() == 1 ? group : rarest_first(group, samples(link, group, range, locking), range.backwards);
  const std::string sql =
      replaced(group_text(hashes.size(), range.backwards, "straight_join"), "{tags}", tags_) +
      std::string(locking);
  std::vector<Value> params(hashes.begin() + 1, hashes.end());
  params.insert(params.end(),
                {Value(hashes.front()), Value(range.after), Value(range.until), Value(range.limit)});
  std::vector<std::int64_t> positions;
  link.run(sql, params, [&](const RowView& row) { positions.push_back(row.integer(0)); });
  return positions;
}

std::vector<StreamSample> MariadbStreamStore::samples(Link& link, const KeyGroup& group,
                                                      const StreamRange& range,
                                                      std::string_view locking) const {
  // One statement for all of them: a UNION of as many parts as there are hashes.
  const std::string part =
      "(" + replaced(group_text(1, range.backwards, {}), "{tags}", tags_) + std::string(locking) + ")";
  std::string sql;
  std::vector<Value> params;
  for (std::size_t i = 0; i < group.size(); ++i) {
    sql += (i == 0 ? "" : " UNION ALL ") + replaced(part, "select ", "select " + std::to_string(i) + ", ");
    params.insert(params.end(),
                  {Value(group[i]), Value(range.after), Value(range.until), Value(stream_sample)});
  }
  std::vector<StreamSample> found(group.size());
  link.run(sql, params, [&](const RowView& row) {
    StreamSample& one = found.at(static_cast<std::size_t>(row.integer(0)));
    const std::int64_t position = row.integer(1);
    const bool further = range.backwards ? position < one.reach : position > one.reach;
    if (one.count++ == 0 || further) one.reach = position;
  });
  return found;
}

ReadPage MariadbStreamStore::read(const ReadRequest& request) {
  std::optional<ReadPage> done;
  work_.run([&](Link& link) {
    StreamPage page(request);
    // Positions are in commit order: whatever is up to the head is visible from now on, and stays as it is.
    // So all statements that end there read one snapshot.
    const std::int64_t head = head_of(link, {}).position;
    page.set_head(head);
    const StreamRange range{.after = page.after(),
                            .until = std::min(page.until(), head),
                            .limit = static_cast<std::size_t>(page.limit()),
                            .backwards = request.backwards};
    if (page.all()) {
      read_all(link, range, page);
    } else {
      const std::vector<std::int64_t> positions = merged_positions(
          keys_.of_query(*request.query), range,
          [&](const KeyGroup& group, const StreamRange& part) { return find(link, group, part, {}); });
      read_found(link, positions, range.backwards, page);
    }
    done = std::move(page).finish();
  });
  return *std::move(done);
}

ReadPage MariadbStreamStore::read_at(std::span<const Position> positions, std::size_t max_bytes) {
  const ReadRequest request = request_at(positions, max_bytes);
  std::vector<std::int64_t> wanted;
  wanted.reserve(positions.size());
  for (const Position one : positions) wanted.push_back(static_cast<std::int64_t>(one));
  std::optional<ReadPage> done;
  work_.run([&](Link& link) {
    StreamPage page(request);
    page.set_head(head_of(link, {}).position);
    read_found(link, wanted, false, page);
    done = std::move(page).finish();
  });
  return *std::move(done);
}

void MariadbStreamStore::read_all(Link& link, StreamRange range, StreamPage& page) const {
  const std::string sql = "SELECT " POSTRIDER_STREAM_COLUMNS " FROM " + events_ +
                          " WHERE position > ? AND position <= ? ORDER BY position " +
                          (range.backwards ? "DESC" : "ASC") + " LIMIT ?";
  while (!page.full()) {
    const std::size_t wanted = page.next_chunk(range.limit);
    std::size_t rows = 0;
    link.run(sql, std::array{Value(range.after), Value(range.until), Value(wanted)}, [&](const RowView& row) {
      ++rows;
      (range.backwards ? range.until : range.after) = row.integer(0) - (range.backwards ? 1 : 0);
      if (!page.full()) page.add(columns_of(row), row.integer(size_column));
    });
    if (rows < wanted) return;
    range.limit -= rows;
  }
}

void MariadbStreamStore::read_found(Link& link, std::span<const std::int64_t> positions, bool backwards,
                                    StreamPage& page) const {
  while (!positions.empty() && !page.full()) {
    const auto chunk = positions.first(std::min(page.next_chunk(positions.size()), ListSql::max_size));
    positions = positions.subspan(chunk.size());
    run_list(link, backwards ? by_position_backwards_ : by_position_, {}, chunk, {}, [&](const RowView& row) {
      if (!page.full()) page.add(columns_of(row), row.integer(size_column));
    });
  }
}

Position MariadbStreamStore::head() {
  StreamHead head;
  work_.run([&](Link& link) { head = head_of(link, {}); });
  return Position{head.position};
}

void MariadbStreamStore::check_schema() {
  work_.run([&](Link& link) {
    require_current_schema(embedded_migrations(), applied_versions(link, schema_), name_);
  });
}

}  // namespace postrider::mariadb
