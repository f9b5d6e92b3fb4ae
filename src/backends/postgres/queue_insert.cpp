// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "backends/postgres/queue_store.hpp"
#include "backends/postgres/tx_statement.hpp"
#include "core/failpoint.hpp"

namespace postrider::postgres {

namespace {

constexpr std::string_view what = "cannot insert events into the queue";

/// One column of all rows; an empty text stands for NULL.
template <class Binder, class Get>
void bind_texts(Binder& params, Oid type, std::span<const NewQueueRow> rows, const Get& get) {
  if (std::all_of(rows.begin(), rows.end(), [&](const NewQueueRow& row) { return get(row).empty(); })) {
    params.null();  // one NULL array instead of many NULL elements
    return;
  }
  params.begin_array(type, rows.size());
  for (const NewQueueRow& row : rows) {
    const std::string_view value = get(row);
    if (value.empty()) {
      params.element_null();
    } else {
      params.element(value);
    }
  }
  params.end_array();
}

bool is_json(const NewQueueRow& row) {
  return row.event->payload_kind() == PayloadKind::json;
}

template <class Binder>
void bind_bytes(Binder& params, std::span<const NewQueueRow> rows) {
  if (std::all_of(rows.begin(), rows.end(), is_json)) {
    params.null();
    return;
  }
  params.begin_array(oid::bytea, rows.size());
  for (const NewQueueRow& row : rows) {
    if (is_json(row)) {
      params.element_null();
    } else {
      params.element(row.event->payload());  // an empty payload of bytes is a payload
    }
  }
  params.end_array();
}

template <class Binder>
void bind_rows(Binder& params, std::span<const NewQueueRow> rows, std::optional<TimePoint> now) {
  using Row = NewQueueRow;
  const auto texts = [&](Oid type, const auto& get) { bind_texts(params, type, rows, get); };
  texts(oid::text, [](const Row& r) { return r.event->id().view(); });
  texts(oid::text, [](const Row& r) { return std::string_view(r.event->type()); });
  texts(oid::text, [](const Row& r) { return std::string_view(r.event->aggregate_type()); });
  texts(oid::text, [](const Row& r) { return std::string_view(r.event->aggregate_id()); });
  texts(oid::text, [](const Row& r) { return std::string_view(r.event->tenant_id()); });
  texts(oid::text, [](const Row& r) { return r.ordering_key; });
  texts(oid::text, [](const Row& r) { return r.dedupe_key; });
  texts(oid::json, [](const Row& r) { return std::string_view(r.event->headers_json()); });
  texts(oid::json,
        [](const Row& r) { return is_json(r) ? std::string_view(r.event->payload()) : std::string_view(); });
  bind_bytes(params, rows);

  params.begin_array(oid::int2, rows.size());
  for (const Row& row : rows) {
    // The table refuses what is out of bounds; it must not come back into them on the way.
    params.element_int2(static_cast<std::int16_t>(std::clamp(row.priority, -1, 32'000)));
  }
  params.end_array();
  params.begin_array(oid::timestamptz, rows.size());
  for (const Row& row : rows) params.element_timestamp(row.event->occurred_at());
  params.end_array();
  if (std::any_of(rows.begin(), rows.end(), [](const Row& r) { return r.event->deliver_at().has_value(); })) {
    params.begin_array(oid::timestamptz, rows.size());
    for (const Row& row : rows) {
      if (const std::optional<TimePoint> at = row.event->deliver_at()) {
        params.element_timestamp(*at);
      } else {
        params.element_null();
      }
    }
    params.end_array();
  } else {
    params.null();
  }
  params.timestamp(now);
}

/// Rows per statement: bounds the memory of one message, and keeps the largest payloads (1 MiB each) far from
/// the server's limit of 1 GiB.
std::size_t batch_end(std::span<const NewQueueRow> rows, std::size_t from) {
  constexpr std::size_t most_rows = 5000;
  constexpr std::size_t most_bytes = 64 << 20;
  std::size_t bytes = 0;
  std::size_t end = from;
  while (end < rows.size() && end - from < most_rows && (end == from || bytes < most_bytes)) {
    bytes += rows[end].event->payload().size() + rows[end].event->headers_json().size();
    ++end;
  }
  return end;
}

/// What came back is what went in, in that order, without the duplicates: ids of events tell which.
void read_inserted(const TxRows& found, std::span<const NewQueueRow> rows,
                   std::vector<InsertedRow>& answers) {
  std::size_t next = 0;
  for (const NewQueueRow& row : rows) {
    if (next < found.size() && found.text(next, 1) == row.event->id().view()) {
      answers.push_back({.id = QueueId{found.int8(next, 0)}});
      ++next;
    } else {
      answers.push_back({.duplicate = true});
    }
  }
}

}  // namespace

std::vector<InsertedRow> PostgresQueueStore::insert(Tx& tx, std::span<const NewQueueRow> rows) {
  require_postgres(tx, what);
  std::vector<InsertedRow> answers;
  answers.reserve(rows.size());
  const std::optional<TimePoint> time = now();
  for (std::size_t from = 0; from < rows.size();) {
    const std::size_t end = batch_end(rows, from);
    const std::span<const NewQueueRow> batch = rows.subspan(from, end - from);
    const bool deduped = std::any_of(batch.begin(), batch.end(),
                                     [](const NewQueueRow& row) { return !row.dedupe_key.empty(); });
    const TxRows found = run_in(tx, deduped ? sql_.insert_deduped : sql_.insert, what,
                                [&](auto& params) { bind_rows(params, batch, time); });
    read_inserted(found, batch, answers);
    from = end;
  }

  std::vector<std::size_t> duplicates;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].duplicate) duplicates.push_back(i);
  }
  if (!duplicates.empty()) {
    // In a statement of its own: it sees what the others inserted, those of this very batch included.
    const TxRows found = run_in(tx, sql_.find_deduped, what, [&](auto& params) {
      params.begin_array(oid::text, duplicates.size());
      for (const std::size_t i : duplicates) params.element(rows[i].dedupe_key);
      params.end_array();
    });
    for (std::size_t row = 0; row < found.size(); ++row) {
      const std::size_t i = duplicates.at(static_cast<std::size_t>(found.int8(row, 0) - 1));
      answers[i].id = QueueId{found.int8(row, 1)};
    }
  }
  if (!rows.empty()) failpoint("queue.insert.after");
  return answers;
}

}  // namespace postrider::postgres
