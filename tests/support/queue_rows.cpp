// SPDX-License-Identifier: Apache-2.0
#include "support/queue_rows.hpp"

#include <algorithm>

namespace postrider::test {
namespace {

Value or_null(const std::string& text) {
  return text.empty() ? Value(nullptr) : Value(text);
}

}  // namespace

std::string QueueRows::time(TimePoint at) const {
  const std::string micros = std::to_string(at.time_since_epoch().count());
  switch (database_.storage().kind()) {
    case BackendKind::postgres:
      return "(timestamptz 'epoch' + " + micros + " * interval '1 microsecond')";
    case BackendKind::mariadb:
      return "(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL " + micros + " MICROSECOND)";
    case BackendKind::sqlite:
      break;
  }
  return micros;
}

void QueueRows::log(const LogRow& row) {
  Transaction tx = database_.storage().begin();
  log(tx, row);
  tx.commit();
}

void QueueRows::log(Tx& tx, const LogRow& row) {
  const std::int64_t seq = row.seq.value_or(last_seq_ + 1);
  last_seq_ = std::max(last_seq_, seq);
  const std::string event_id = row.event_id.empty() ? "e" + std::to_string(row.id) : row.event_id;
  const std::string now = time(clock_.now());
  tx.execute(
      "insert into " + database_.table("event_log") +
          " (id, seq, token, event_id, event_type, tenant_id, ordering_key, headers, payload, "
          "payload_bytes, status, priority, attempts, crashes, results, created_at, occurred_at, "
          "processing_started_at, finalized_at) values (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 0, ?, " +
          now + ", " + now + ", " + now + ", " + time(row.finalized_at.value_or(clock_.now())) + ")",
      row.id, seq, event_id, row.type, or_null(row.tenant), or_null(row.key), or_null(row.headers),
      row.bytes.has_value() ? Value(nullptr) : Value(row.payload),
      row.bytes.has_value() ? Value(Blob{*row.bytes}) : Value(nullptr), static_cast<std::int64_t>(row.status),
      row.attempts, or_null(row.results));
}

void QueueRows::queue(const PendingRow& row) {
  const TimePoint now = clock_.now();
  const std::string event_id = row.event_id.empty() ? "e" + std::to_string(row.id) : row.event_id;
  Transaction tx = database_.storage().begin();
  tx.execute(
      "insert into " + database_.table("event_queue") +
          " (id, event_id, event_type, tenant_id, payload, status, priority, attempts, crashes, token, "
          "owner, last_error, available_at, created_at, updated_at, occurred_at, "
          "processing_started_at, lease_until, quarantined_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
          "?, ?, " +
          time(now + row.available_in) + ", " + time(now - row.created_ago) + ", " +
          time(now - row.updated_ago) + ", " + time(now) + ", " +
          (row.started_ago.has_value() ? time(now - *row.started_ago) : "NULL") + ", " +
          (row.lease.has_value() ? time(now + *row.lease) : "NULL") + ", " +
          (row.quarantined ? time(now) : "NULL") + ")",
      row.id, event_id, row.type, or_null(row.tenant), row.payload, static_cast<std::int64_t>(row.status),
      row.priority, row.attempts, row.crashes, row.token, or_null(row.owner), or_null(row.error));
  tx.commit();
}

std::string QueueRows::cell(const std::string& sql) {
  Transaction tx = database_.storage().begin();
  const Rows rows = tx.execute(sql);
  tx.commit();
  return rows.empty() ? std::string() : rows.rows[0].at(0).value_or(std::string());
}

void QueueRows::run(const std::string& sql) {
  Transaction tx = database_.storage().begin();
  tx.execute(sql);
  tx.commit();
}

}  // namespace postrider::test
