// SPDX-License-Identifier: Apache-2.0
#include "app/cli/event_line.hpp"

#include <boost/json.hpp>
#include <ostream>
#include <string>

#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"
#include "core/utf8.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t longest_payload = 100;

/// Nothing of an event reaches the terminal as a command.
std::string safe(std::string_view text) {
  return cell(api::shown(text));
}

std::string payload_text(PayloadKind kind, std::string_view payload) {
  if (kind == PayloadKind::bytes) return "(" + std::to_string(payload.size()) + " bytes)";
  std::string text = safe(utf8_prefix(payload, longest_payload));
  return payload.size() > longest_payload ? text + "…" : text;
}

}  // namespace

void print_line(std::ostream& out, Format format, const StoredEvent& event) {
  if (format == Format::json) {
    out << json::serialize(api::stored_json(event)) << '\n';
    return;
  }
  out << static_cast<std::int64_t>(event.position()) << "  " << api::time_text(event.stored_at()) << "  "
      << safe(event.type());
  std::string tags;  // one field, however many there are
  for (const Tag& tag : event.tags()) tags += (tags.empty() ? "" : ",") + safe(tag.encode());
  out << "  " << (tags.empty() ? "-" : tags);
  out << "  " << payload_text(event.payload_kind(), event.data()) << '\n';
}

void print_line(std::ostream& out, Format format, const LogEntry& entry) {
  if (format == Format::json) {
    out << json::serialize(api::whole_json(entry)) << '\n';
    return;
  }
  out << static_cast<std::int64_t>(entry.seq) << "  " << api::time_text(entry.finalized_at) << "  "
      << to_string(entry.status) << "  ";
  if (!entry.event) {
    out << "(unreadable: " << safe(entry.decode_error) << ")\n";
    return;
  }
  out << safe(entry.event->type()) << "  " << safe(entry.event->id().view()) << "  "
      << payload_text(entry.event->payload_kind(), entry.event->payload()) << '\n';
}

void print_line(std::ostream& out, Format format, const OutboxRecord& record) {
  if (format == Format::json) {
    out << json::serialize(api::brief_json(record)) << '\n';
    return;
  }
  out << record.id.view() << "  " << api::time_text(record.created_at) << "  " << to_string(record.status)
      << "  " << safe(record.type);
  if (!record.aggregate_type.empty())
    out << "  " << safe(record.aggregate_type) << '/' << safe(record.aggregate_id);
  if (!record.last_error.empty()) out << "  " << safe(utf8_prefix(record.last_error, longest_payload));
  out << '\n';
}

}  // namespace postrider::cli
