// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "backends/postgres/bind_events.hpp"
#include "backends/postgres/queue_store.hpp"
#include "backends/postgres/tx_statement.hpp"
#include "core/failpoint.hpp"

namespace postrider::postgres {

namespace {

constexpr std::string_view cannot_insert_queue = "cannot insert events into the queue";

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
  texts(oid::json, [](const Row& r) { return json_payload(*r.event); });
  bind_bytes(params, rows);

  params.begin_array(oid::int2, rows.size());
  for (const Row& row : rows) {
    // The table refuses what is out of bounds; it must not come back into them on the way.
    params.element_int2(static_cast<std::int16_t>(std::clamp(row.priority, -1, 32'000)));
  }
  params.end_array();
  bind_times(params, rows);
  params.timestamp(now);
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
  require_postgres(tx, cannot_insert_queue);
  std::vector<InsertedRow> answers;
  answers.reserve(rows.size());
  const std::optional<TimePoint> time = now();
  for (std::size_t from = 0; from < rows.size();) {
    const std::size_t end = batch_end(rows, from);
    const std::span<const NewQueueRow> batch = rows.subspan(from, end - from);
    const bool deduped = std::any_of(batch.begin(), batch.end(),
                                     [](const NewQueueRow& row) { return !row.dedupe_key.empty(); });
    const TxRows found = run_in(tx, deduped ? sql_.insert_deduped : sql_.insert, cannot_insert_queue,
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
    const TxRows found = run_in(tx, sql_.find_deduped, cannot_insert_queue, [&](auto& params) {
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
