// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/stream_store.hpp"
#include "storage/stream_page.hpp"

namespace postrider::postgres {
namespace {

constexpr std::string_view cannot_read = "cannot read the event store";

StreamColumns columns_of(const Result& rows, int row) {
  namespace column = stream_column;
  const bool bytes = rows.is_null(row, column::data);
  return {.position = rows.int8(row, column::position),
          .event_id = rows.text(row, column::event_id),
          .type = rows.text(row, column::type),
          .tags = rows.text(row, column::tags),
          .data_kind = bytes ? PayloadKind::bytes : PayloadKind::json,
          .data = rows.text(row, bytes ? column::data_bytes : column::data),
          .metadata = rows.text(row, column::metadata),
          .correlation_id = rows.text(row, column::correlation_id),
          .causation_id = rows.text(row, column::causation_id),
          .occurred_at = rows.timestamp(row, column::occurred_at),
          .stored_at = rows.timestamp(row, column::stored_at)};
}

void bind_groups(Params& params, const std::vector<KeyGroup>& groups) {
  std::int32_t total = 0;
  params.begin_array(oid::int4, groups.size());
  for (const KeyGroup& group : groups) {
    params.element_int4(total + 1);
    total += static_cast<std::int32_t>(group.size());
  }
  params.end_array();
  std::int32_t last = 0;
  params.begin_array(oid::int4, groups.size());
  for (const KeyGroup& group : groups) {
    last += static_cast<std::int32_t>(group.size());
    params.element_int4(last);
  }
  params.end_array();
  params.begin_array(oid::int8, static_cast<std::size_t>(total));
  for (const KeyGroup& group : groups) {
    for (const std::int64_t hash : group) params.element_int8(hash);
  }
  params.end_array();
}

/// Tells where the page ends, when it is full.
void tell_end(const Result& rows, const StreamPage& page, const std::function<void(Position)>& located) {
  namespace column = stream_column;
  const int count = rows.rows();
  if (rows.is_null(count - 1, column::position)) return;
  std::int64_t bytes = 0;
  for (int row = 0; row < count; ++row) bytes += rows.int4(row, column::size);
  if (count < page.limit() && bytes < page.max_bytes()) return;
  located(Position{rows.int8(count - 1, column::position)});
}

}  // namespace

void PostgresStreamStore::fill(StreamPage& page, const ReadRequest& request, const Statement& statement,
                               const Params& params) const {
  with_connection_([&](Connection& connection) {
    const RollbackGuard guard(connection);
    Pipeline pipeline(connection, cannot_read);
    pipeline.send(begin_worker_statement);
    pipeline.send(settings_statement);
    pipeline.send(statement, params);
    pipeline.send_commit(true);
    const Result rows = std::move(pipeline.finish().at(2));
    page.set_head(rows.int8(0, stream_column::head));
    if (request.located) tell_end(rows, page, request.located);
    for (int row = 0; row < rows.rows(); ++row) {
      if (rows.is_null(row, stream_column::position)) break;  // the head alone
      page.add(columns_of(rows, row), rows.int4(row, stream_column::size));
    }
  });
}

ReadPage PostgresStreamStore::read(const ReadRequest& request) {
  StreamPage page(request);
  Params params;
  params.int8(page.after()).int8(page.until()).int8(page.limit()).int8(page.max_bytes());
  const Statement* statement = request.backwards ? &sql_.read_all_backwards : &sql_.read_all;
  if (!page.all()) {
    statement = request.backwards ? &sql_.read_groups_backwards : &sql_.read_groups;
    bind_groups(params, keys_.of_query(*request.query));
  }
  fill(page, request, *statement, params);
  return std::move(page).finish();
}

ReadPage PostgresStreamStore::read_at(std::span<const Position> positions, std::size_t max_bytes) {
  const ReadRequest request = request_at(positions, max_bytes);
  StreamPage page(request);
  Params params;
  params.int8(page.max_bytes()).begin_array(oid::int8, positions.size());
  for (const Position one : positions) params.element_int8(static_cast<std::int64_t>(one));
  params.end_array();
  fill(page, request, sql_.read_at, params);
  return std::move(page).finish();
}

Position PostgresStreamStore::head() {
  std::int64_t last = 0;
  with_connection_([&](Connection& connection) {
    const RollbackGuard guard(connection);
    Pipeline pipeline(connection, cannot_read);
    pipeline.send(begin_worker_statement);
    pipeline.send(settings_statement);
    pipeline.send(sql_.head);
    pipeline.send_commit(true);
    const Result rows = std::move(pipeline.finish().at(2));
    if (rows.rows() > 0) last = rows.int8(0, 0);
  });
  return Position{last};
}

}  // namespace postrider::postgres
