// SPDX-License-Identifier: Apache-2.0
#include "storage/stream_rows.hpp"

#include <array>
#include <boost/json.hpp>
#include <utility>

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
  std::array<unsigned char, 2048> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): scratch
  boost::json::monotonic_resource memory(buffer.data(), buffer.size());
  boost::json::error_code error;
  const boost::json::value parsed = boost::json::parse(text, error, &memory);
  if (error || !parsed.is_array()) not_tags("they are not a JSON array");
  tags.reserve(parsed.get_array().size());
  for (const boost::json::value& one : parsed.get_array()) {
    if (!one.is_string()) not_tags("one of them is not a text");
    try {
      tags.push_back(Tag::decode(std::string_view(one.get_string())));
    } catch (const Error& refused) {
      not_tags(refused.what());
    }
  }
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
