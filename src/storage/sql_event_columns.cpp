// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_event_columns.hpp"

namespace postrider {
namespace {

std::string_view view(const Rows::Cell& cell) {
  return cell.has_value() ? std::string_view(*cell) : std::string_view();
}

}  // namespace

std::string event_columns(const SqlDialect& dialect) {
  return "event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, headers, payload, " +
         around(dialect.hex, "payload_bytes") + ", " + around(dialect.to_micros, "occurred_at") + ", " +
         around(dialect.to_micros, "created_at");
}

EventCells::EventCells(const std::vector<Rows::Cell>& row) {
  columns_.event_id = view(row[0]);
  columns_.event_type = view(row[1]);
  columns_.aggregate_type = view(row[2]);
  columns_.aggregate_id = view(row[3]);
  columns_.tenant_id = view(row[4]);
  columns_.ordering_key = view(row[5]);
  columns_.headers_json = view(row[6]);
  if (row[7].has_value()) {
    columns_.payload = view(row[7]);
  } else {
    bytes_ = bytes_from_hex(view(row[8]));
    columns_.payload_kind = PayloadKind::bytes;
    columns_.payload = bytes_;
  }
  columns_.occurred_at = time_of(row[9]);
  columns_.created_at = time_of(row[10]);
}

}  // namespace postrider
