// SPDX-License-Identifier: Apache-2.0
#include "postrider/event.hpp"

#include <utility>

#include "core/json_text.hpp"
#include "core/rfc3339.hpp"
#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider {

struct Event::Fields {
  EventId id;
  std::string type;
  std::optional<TimePoint> occurred_at;
  std::string aggregate_type;
  std::string aggregate_id;
  std::string tenant_id;
  std::string ordering_key;
  std::optional<TimePoint> deliver_at;
  Headers headers;
  std::string headers_json;
  std::string payload;
  PayloadKind kind = PayloadKind::json;
};

namespace {

[[noreturn]] void refuse_field(std::string_view field, std::string_view why, std::string_view hint = {}) {
  throw Error(ErrorCode::invalid_argument, "event refused: " + std::string(field), why, hint);
}

/// Returns the length in characters.
std::size_t check_text(std::string_view field, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    refuse_field(field, "it has a NUL character at byte " + std::to_string(text.find('\0')),
                 "databases cannot store it as text; put binary data into the payload with bytes()");
  }
  const std::optional<std::size_t> chars = utf8_length(text);
  if (!chars) {
    refuse_field(field, "it is not valid UTF-8",
                 "convert it to UTF-8, or put binary data into the payload with bytes()");
  }
  return *chars;
}

void check_length(std::string_view field, std::string_view text, std::size_t limit) {
  const std::size_t chars = check_text(field, text);
  if (chars > limit) {
    refuse_field(field, "it has " + std::to_string(chars) + " characters, at most " + std::to_string(limit) +
                            " are allowed");
  }
}

void check_header(const std::string& name, const std::string& value) {
  if (name.empty()) refuse_field("header name", "it is empty", "give every header a name");
  check_length("header name '" + utf8_repaired(utf8_prefix(name, EventLimits::header_name_chars)) + "'", name,
               EventLimits::header_name_chars);
  const std::string field = "header '" + name + "'";
  check_text(field, value);
  if (value.size() > EventLimits::header_value_bytes) {
    refuse_field(field,
                 "its value has " + std::to_string(value.size()) + " bytes, at most " +
                     std::to_string(EventLimits::header_value_bytes) + " are allowed",
                 "put it into the payload");
  }
}

void check_time(std::string_view field, std::optional<TimePoint> time) {
  if (time && (*time < EventLimits::earliest || *time > EventLimits::latest)) {
    refuse_field(
        field,
        "it is not from " + format_time(EventLimits::earliest) + " to " + format_time(EventLimits::latest),
        "not every database stores other times");
  }
}

void check_payload(const std::string& payload, PayloadKind kind) {
  if (payload.size() > EventLimits::payload_bytes) {
    refuse_field("payload",
                 "it has " + std::to_string(payload.size()) + " bytes, at most " +
                     std::to_string(EventLimits::payload_bytes) + " are allowed",
                 "store it elsewhere and publish where it is");
  }
  if (kind == PayloadKind::bytes) return;
  if (const auto fault = json_fault(payload, EventLimits::json_depth)) {
    refuse_field("payload", "it is not valid JSON, " + *fault,
                 "send anything but JSON as bytes: EventBuilder::bytes(), payloadBase64 of the REST API");
  }
}

}  // namespace

Event Event::json(EventType type, std::string payload) {
  return EventBuilder(std::move(type)).json(std::move(payload)).build();
}
Event Event::bytes(EventType type, std::string payload) {
  return EventBuilder(std::move(type)).bytes(std::move(payload)).build();
}
EventBuilder Event::builder(EventType type) {
  return EventBuilder(std::move(type));
}

const EventId& Event::id() const noexcept {
  return fields_->id;
}
const std::string& Event::type() const noexcept {
  return fields_->type;
}
TimePoint Event::occurred_at() const noexcept {
  return *fields_->occurred_at;
}
const std::string& Event::aggregate_type() const noexcept {
  return fields_->aggregate_type;
}
const std::string& Event::aggregate_id() const noexcept {
  return fields_->aggregate_id;
}
const std::string& Event::tenant_id() const noexcept {
  return fields_->tenant_id;
}
const std::string& Event::ordering_key() const noexcept {
  return fields_->ordering_key;
}
std::optional<TimePoint> Event::deliver_at() const noexcept {
  return fields_->deliver_at;
}
const Headers& Event::headers() const noexcept {
  return fields_->headers;
}
PayloadKind Event::payload_kind() const noexcept {
  return fields_->kind;
}
std::string_view Event::payload() const noexcept {
  return fields_->payload;
}
std::span<const std::byte> Event::payload_bytes() const noexcept {
  return std::as_bytes(std::span<const char>(fields_->payload));
}
std::string_view Event::headers_json() const noexcept {
  return fields_->headers_json;
}

EventBuilder::EventBuilder(EventType type) : fields_(std::make_shared<Event::Fields>()) {
  fields_->type = std::move(type).name();
}
EventBuilder::EventBuilder(EventBuilder&&) noexcept = default;
EventBuilder& EventBuilder::operator=(EventBuilder&&) noexcept = default;
EventBuilder::~EventBuilder() = default;

Event::Fields& EventBuilder::fields() {
  if (!fields_) {
    refuse_field("builder", "it has built its event already, or was moved from",
                 "make a new builder for every event");
  }
  return *fields_;
}

EventBuilder& EventBuilder::id(EventId id) {
  fields().id = id;
  return *this;
}
EventBuilder& EventBuilder::occurred_at(TimePoint time) {
  fields().occurred_at = time;
  return *this;
}
EventBuilder& EventBuilder::aggregate(AggregateType type, std::string id) {
  return aggregate_type(std::move(type)).aggregate_id(std::move(id));
}
EventBuilder& EventBuilder::aggregate_type(AggregateType type) {
  fields().aggregate_type = std::move(type).name();
  return *this;
}
EventBuilder& EventBuilder::aggregate_id(std::string id) {
  fields().aggregate_id = std::move(id);
  return *this;
}
EventBuilder& EventBuilder::tenant(std::string id) {
  fields().tenant_id = std::move(id);
  return *this;
}
EventBuilder& EventBuilder::ordering_key(std::string key) {
  fields().ordering_key = std::move(key);
  return *this;
}
EventBuilder& EventBuilder::deliver_at(TimePoint time) {
  fields().deliver_at = time;
  return *this;
}
EventBuilder& EventBuilder::header(std::string name, std::string value) {
  fields().headers.insert_or_assign(std::move(name), std::move(value));
  return *this;
}
EventBuilder& EventBuilder::headers(Headers headers) {
  fields().headers = std::move(headers);
  return *this;
}
EventBuilder& EventBuilder::json(std::string payload) {
  fields().payload = std::move(payload);
  fields().kind = PayloadKind::json;
  has_json_ = true;
  return *this;
}
EventBuilder& EventBuilder::bytes(std::string payload) {
  fields().payload = std::move(payload);
  fields().kind = PayloadKind::bytes;
  has_bytes_ = true;
  return *this;
}
EventBuilder& EventBuilder::headers_json(std::string_view text) {
  fields().headers = decode_headers(text);
  return *this;
}

Event EventBuilder::build() {
  Event::Fields& event = fields();
  std::shared_ptr<Event::Fields> spent = std::move(fields_);  // also when something is refused below
  if (event.type.empty())
    refuse_field("type", "it is empty", "name what happened, for example \"UserCreated\"");
  check_length("type", event.type, EventLimits::type_chars);
  check_length("aggregate type", event.aggregate_type, EventLimits::aggregate_type_chars);
  check_length("aggregate id", event.aggregate_id, EventLimits::aggregate_id_chars);
  check_length("tenant id", event.tenant_id, EventLimits::tenant_chars);
  check_length("ordering key", event.ordering_key, EventLimits::ordering_key_chars);
  check_time("occurred_at", event.occurred_at);
  check_time("deliver_at", event.deliver_at);
  if (event.headers.size() > EventLimits::headers) {
    refuse_field("headers",
                 "there are " + std::to_string(event.headers.size()) + ", at most " +
                     std::to_string(EventLimits::headers) + " are allowed",
                 "put them into the payload");
  }
  for (const auto& [name, value] : event.headers) check_header(name, value);
  if (has_json_ == has_bytes_) {
    refuse_field("payload",
                 has_json_ ? "both json() and bytes() were given" : "neither json() nor bytes() was given",
                 "give exactly one of them");
  }
  check_payload(event.payload, event.kind);

  event.headers_json = encode_headers(event.headers);
  if (event.id.empty()) event.id = new_event_id();
  if (!event.occurred_at) event.occurred_at = Clock::system().now();
  return Event(std::move(spent));
}

}  // namespace postrider
