// SPDX-License-Identifier: Apache-2.0
#include "postrider/cloud_events.hpp"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>
#include <charconv>

#include "core/rfc3339.hpp"
#include "postrider/error.hpp"
#include "publishers/header_text.hpp"

namespace postrider {
namespace {

constexpr std::string_view trace_parent = "traceparent";
constexpr std::string_view trace_state = "tracestate";

bool printable(char c) {
  return c >= 0x20 && c < 0x7f;
}

/// Names that say something to a transport, or that an attribute has.
bool means_something(std::string_view name) {
  constexpr std::array<std::string_view, 4> prefixes{"ce-", "ce_", "webhook-", "nats-"};
  constexpr std::array<std::string_view, 14> names{
      "content-type", "content-length", "transfer-encoding", "content-encoding",
      "connection",   "host",           "authorization",     "expect",
      "te",           "trailer",        "upgrade",           "proxy-authorization",
      "keep-alive",   "user-agent"};
  return std::any_of(
             prefixes.begin(), prefixes.end(),
             [&](std::string_view one) { return same_ignoring_case(name.substr(0, one.size()), one); }) ||
         std::any_of(names.begin(), names.end(),
                     [&](std::string_view one) { return same_ignoring_case(name, one); });
}

bool fits_outside(std::string_view name, std::string_view value) {
  // Spaces at the ends do not survive HTTP.
  const bool trimmed = value.empty() || (value.front() != ' ' && value.back() != ' ');
  return header_token(name) && !means_something(name) && trimmed &&
         std::all_of(value.begin(), value.end(), printable);
}

void append_base64(std::string& out, std::string_view bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < here ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) out += i <= here ? letters[group >> (18U - 6U * i) & 63U] : '=';
  }
}

/// Stands in JSON as it is.
bool plain(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; });
}

void append_quoted(std::string& out, std::string_view text) {
  if (plain(text)) {  // nearly always
    out += '"';
    out += text;
    out += '"';
    return;
  }
  out += boost::json::serialize(boost::json::string_view(text.data(), text.size()));
}

void append_tag(std::string& out, const Tag& tag) {
  if (tag.key.find('=') != std::string::npos || !plain(tag.key) || !plain(tag.value)) {
    append_quoted(out, tag.encode());
    return;
  }
  out += '"';
  out += tag.key;
  out += '=';
  out += tag.value;
  out += '"';
}

/// With zeros before it, up to that width.
void write_number(std::string& out, std::int64_t number, std::size_t width) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const auto size = static_cast<std::size_t>(end - digits.data());
  out.assign(width - std::min(width, size), '0');
  out.append(digits.data(), size);
}

}  // namespace

void CloudEventsOptions::check() const {
  constexpr std::size_t longest = 1024;
  constexpr std::string_view never = "\"<>\\^`{|} ";
  const bool fits =
      !source.empty() && source.size() <= longest && std::all_of(source.begin(), source.end(), [&](char c) {
        return printable(c) && never.find(c) == std::string_view::npos;
      });
  if (!fits) {
    throw Error(
        ErrorCode::invalid_argument, "cannot speak CloudEvents",
        "the source '" + source.substr(0, longest) + "' is not a URI reference of 1 to 1024 characters",
        "use a path like /shop/orders, or a URI");
  }
}

void CloudEvent::fill(const SinkMessage& message, const CloudEventsOptions& options) {
  attributes_.clear();
  headers_.clear();
  const Event& event = *message.event;
  id_ = event.id().view();
  key_ = message.key;
  collect(message, options);
  const bool json = event.payload_kind() == PayloadKind::json;
  content_type_ = json ? "application/json" : "application/octet-stream";
  body_ = event.payload();
  if (options.mode == CloudEventsMode::binary) return;
  write_json(event);
  attributes_.clear();
  content_type_ = "application/cloudevents+json; charset=utf-8";
  body_ = json_;
}

void CloudEvent::collect(const SinkMessage& message, const CloudEventsOptions& options) {
  const Event& event = *message.event;
  const auto add = [this](std::string_view name, std::string_view value) {
    if (!value.empty()) attributes_.push_back({name, value});
  };
  time_.clear();
  append_time(time_, event.occurred_at());
  add("specversion", "1.0");
  add("id", id_);
  add("source", options.source);
  add("type", event.type());
  add("time", time_);
  add("subject", event.aggregate_id());
  add("partitionkey", message.key);
  add("tenantid", event.tenant_id());
  add("aggregatetype", event.aggregate_type());
  if (const StoredEvent* stored = message.stored; stored != nullptr) {
    // The extension asks for texts whose order is the order of the events.
    constexpr std::size_t width = 19;
    write_number(sequence_, static_cast<std::int64_t>(stored->position()), width);
    write_number(epoch_, static_cast<std::int64_t>(message.epoch), 1);
    tags_.clear();
    for (const Tag& tag : stored->tags()) {
      tags_ += tags_.empty() ? '[' : ',';
      append_tag(tags_, tag);
    }
    if (!tags_.empty()) tags_ += ']';
    add("sequence", sequence_);
    add("correlationid", stored->correlation_id());
    add("causationid", stored->causation_id());
    add("topic", message.topic);
    add("epoch", epoch_);
    add("tags", tags_);
  }
  bool all_fit = true;
  for (const auto& [name, value] : event.headers()) {
    const bool fits = fits_outside(name, value);
    all_fit = all_fit && fits;
    if (fits) headers_.push_back({name, value});
    // What has a place among the extensions is one in structured mode, where headers may get lost.
    if (options.mode == CloudEventsMode::structured && fits &&
        (name == trace_parent || name == trace_state)) {
      add(name, value);
    }
  }
  if (!all_fit || (options.mode == CloudEventsMode::structured && !event.headers().empty())) {
    add("eventheaders", event.headers_json());
  }
}

void CloudEvent::write_json(const Event& event) {
  json_.clear();
  for (const Attribute& attribute : attributes_) {
    json_ += json_.empty() ? '{' : ',';
    append_quoted(json_, attribute.name);
    json_ += ':';
    append_quoted(json_, attribute.value);
  }
  json_ += ",\"datacontenttype\":";
  append_quoted(json_, content_type_);
  if (event.payload_kind() == PayloadKind::json) {
    json_ += ",\"data\":";
    json_ += event.payload();
  } else {
    json_ += ",\"data_base64\":\"";
    append_base64(json_, event.payload());
    json_ += '"';
  }
  json_ += '}';
}

std::string cloud_events_header_value(std::string_view value) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out;
  out.reserve(value.size());
  for (const char c : value) {
    if (c > ' ' && printable(c) && c != '"' && c != '%') {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += hex[byte >> 4U];
      out += hex[byte & 15U];
    }
  }
  return out;
}

}  // namespace postrider
