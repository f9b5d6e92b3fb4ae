// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/event_columns.hpp"

namespace postrider::sqlite {

void bind_event(Statement& statement, const Event& event, std::string_view ordering_key,
                std::int64_t created_at) {
  const bool json = event.payload_kind() == PayloadKind::json;
  statement.with(event.id().view(), event.type(), text_or_null(event.aggregate_type()),
                 text_or_null(event.aggregate_id()), text_or_null(event.tenant_id()),
                 text_or_null(ordering_key), json ? Value(event.payload()) : Value(nullptr),
                 json ? Value(nullptr) : Value(Blob{event.payload()}), text_or_null(event.headers_json()),
                 micros(event.occurred_at()), created_at);
}

OutboxColumns read_event(const Statement& row) {
  OutboxColumns columns;
  columns.event_id = row.text(0);
  columns.event_type = row.text(1);
  columns.aggregate_type = row.text(2);
  columns.aggregate_id = row.text(3);
  columns.tenant_id = row.text(4);
  columns.ordering_key = row.text(5);
  columns.payload_kind = row.is_null(6) ? PayloadKind::bytes : PayloadKind::json;
  columns.payload = row.is_null(6) ? row.blob(7) : row.text(6);
  columns.headers_json = row.text(8);
  columns.occurred_at = TimePoint(Duration(row.integer(9)));
  columns.created_at = TimePoint(Duration(row.integer(10)));
  return columns;
}

}  // namespace postrider::sqlite
