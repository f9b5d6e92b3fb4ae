// SPDX-License-Identifier: Apache-2.0
#include "storage/row_decoder.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

EventId decode_id(std::string_view text) {
  try {
    return EventId(text);
  } catch (const Error& e) {
    throw Error(ErrorCode::schema, "cannot read the outbox: a row has an event_id that is none", e.what(),
                "correct or delete that row, then add the table's CHECK on event_id again");
  }
}

Event build_event(const OutboxColumns& columns, const EventId& id) {
  EventBuilder builder{EventType(columns.event_type)};
  builder.id(id).occurred_at(columns.occurred_at);
  if (!columns.aggregate_type.empty()) builder.aggregate_type(AggregateType(columns.aggregate_type));
  if (!columns.aggregate_id.empty()) builder.aggregate_id(std::string(columns.aggregate_id));
  if (!columns.tenant_id.empty()) builder.tenant(std::string(columns.tenant_id));
  if (!columns.ordering_key.empty()) builder.ordering_key(std::string(columns.ordering_key));
  if (!columns.headers_json.empty()) builder.headers_json(columns.headers_json);
  if (columns.payload_kind == PayloadKind::json) {
    builder.json(std::string(columns.payload));
  } else {
    builder.bytes(std::string(columns.payload));
  }
  return builder.build();
}

}  // namespace

ClaimedEvent decode_row(const OutboxColumns& columns) {
  ClaimedEvent claimed;
  claimed.lease = {.id = decode_id(columns.event_id), .token = Token{columns.token}};
  claimed.ordering_key = std::string(columns.ordering_key);
  // A foreign program may have written any number; an Attempt is never negative and never overflows.
  claimed.failed = Attempt{static_cast<std::int32_t>(
      std::clamp<std::int64_t>(columns.attempts, 0, std::numeric_limits<std::int32_t>::max()))};
  claimed.created_at = columns.created_at;
  try {
    claimed.event = build_event(columns, claimed.lease.id);
  } catch (const Error& e) {
    claimed.decode_error = e.what();
  }
  return claimed;
}

DecodedEvent decode_event(const OutboxColumns& columns) {
  DecodedEvent decoded;
  try {
    decoded.event = build_event(columns, EventId(columns.event_id));
  } catch (const Error& e) {
    decoded.error = e.what();
  }
  return decoded;
}

std::string stored_error(std::string_view message) {
  // Cut before repairing, which may triple the size of a message that is no text at all. Both count a bad
  // byte as one.
  return utf8_repaired(utf8_prefix(message, max_error_chars));
}

}  // namespace postrider
