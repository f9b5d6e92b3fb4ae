// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_outbox_rows.hpp"

namespace postrider {
namespace {

OutboxRecord to_outbox_record(const std::vector<Rows::Cell>& row) {
  OutboxRecord record;
  record.id = EventId(text(row[0]));
  record.type = text(row[1]);
  record.aggregate_type = text(row[2]);
  record.aggregate_id = text(row[3]);
  record.tenant_id = text(row[4]);
  record.ordering_key = text(row[5]);
  record.headers_json = text(row[6]);
  if (row[7].has_value()) {
    record.payload = *row[7];
  } else {
    record.payload_kind = PayloadKind::bytes;
    record.payload = bytes_from_hex(text(row[8]));
  }
  record.status = static_cast<EventStatus>(number(row[9]));
  record.attempts = Attempt{static_cast<std::int32_t>(number(row[10]))};
  record.occurred_at = time_of(row[11]);
  record.created_at = time_of(row[12]);
  record.available_at = time_of(row[13]);
  if (row[14].has_value()) record.done_at = time_of(row[14]);
  record.last_error = text(row[15]);
  record.owner = text(row[16]);
  if (row[17].has_value()) record.lease_until = time_of(row[17]);
  record.seq = number(row[18]);
  return record;
}

}  // namespace

std::string outbox_columns(const SqlDialect& dialect, OutboxContent content) {
  std::string list = "event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, ";
  list += content == OutboxContent::whole
              ? "headers, payload, " + around(dialect.hex, "payload_bytes")
              : std::string(
                    "null, case when payload is null then null else '' end, ''");  // its kind all the same
  list += ", status, attempts";
  for (const std::string_view column : {"occurred_at", "created_at", "available_at", "done_at"}) {
    list += ", " + around(dialect.to_micros, column);
  }
  return list + ", last_error, owner, " + around(dialect.to_micros, "lease_until") + ", seq";
}

std::vector<OutboxRecord> outbox_records(const Rows& rows) {
  std::vector<OutboxRecord> records;
  records.reserve(rows.size());
  for (const auto& row : rows.rows) records.push_back(to_outbox_record(row));
  return records;
}

}  // namespace postrider
