// SPDX-License-Identifier: Apache-2.0
#include "storage/stream_rows.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>
#include <utility>

#include "core/json_text.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

[[noreturn]] void not_tags(std::string_view why) {
  throw Error(ErrorCode::schema, "cannot read the tags of an event", why,
              "they are a JSON array of texts like \"key=value\"");
}

}  // namespace

std::string encode_tags(const Tags& tags) {
  std::string text = "[";
  for (const Tag& tag : tags) {
    if (text.size() > 1) text += ',';
    text += boost::json::serialize(boost::json::string_view(tag.encode()));
  }
  return text += ']';
}

Tags decode_tags(std::string_view text) {
  Tags tags;
  if (text == "[]") return tags;
  const std::string_view fault = each_json_text(text, [&](std::string_view one) {
    try {
      tags.push_back(Tag::decode(one));
    } catch (const Error& refused) {
      not_tags(refused.what());
    }
  });
  if (!fault.empty()) not_tags(fault);
  return tags;
}

StoredEvent decode_stream_row(const StreamColumns& columns) {
  OutboxColumns event;
  event.event_id = columns.event_id;
  event.event_type = columns.type;
  event.headers_json = columns.metadata;
  event.payload_kind = columns.data_kind;
  event.payload = columns.data;
  event.occurred_at = columns.occurred_at;
  DecodedEvent decoded = decode_event(event);
  if (!decoded.event.has_value()) {
    throw Error(ErrorCode::schema, "cannot read the event at position " + std::to_string(columns.position),
                decoded.error, "events are written through the event store only; correct that row");
  }
  return StoredEvent({.position = Position{columns.position},
                      .event = *std::move(decoded.event),
                      .tags = decode_tags(columns.tags),
                      .correlation_id = std::string(columns.correlation_id),
                      .causation_id = std::string(columns.causation_id),
                      .stored_at = columns.stored_at});
}

}  // namespace postrider
