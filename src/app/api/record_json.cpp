// SPDX-License-Identifier: Apache-2.0
#include "app/api/record_json.hpp"

#include <openssl/evp.h>

#include <boost/json.hpp>
#include <utility>

#include "app/api/json_values.hpp"
#include "app/api/routes.hpp"
#include "core/json_text.hpp"
#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;

json::value shown_or_null(std::string_view text) {
  return text.empty() ? json::value(nullptr) : shown(text);
}

json::object event_json(const LogEntry& entry) {
  const bool begun = entry.processing_started_at != TimePoint{};  // else it was cancelled before
  json::object one{
      {"seq", static_cast<std::int64_t>(entry.seq)},
      {"id", static_cast<std::int64_t>(entry.id)},
      {"status", to_string(entry.status)},
      {"attempts", entry.attempts},
      {"crashes", entry.crashes},
      {"createdAt", time_text(entry.created_at)},
      {"processingStartedAt", begun ? json::value(time_text(entry.processing_started_at)) : nullptr},
      {"finalizedAt", time_text(entry.finalized_at)}};
  if (entry.event) {
    one["eventId"] = entry.event->id().view();
    one["type"] = shown(entry.event->type());
    one["aggregateType"] = shown_or_null(entry.event->aggregate_type());
    one["aggregateId"] = shown_or_null(entry.event->aggregate_id());
    one["tenantId"] = shown_or_null(entry.event->tenant_id());
  } else {
    one["decodeError"] = shown(entry.decode_error);
  }
  one["results"] = results_json(entry.results);
  return one;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are bytes
  const auto* const from = reinterpret_cast<const unsigned char*>(bytes.data());
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  auto* const to = reinterpret_cast<unsigned char*>(text.data());
  text.resize(static_cast<std::size_t>(EVP_EncodeBlock(to, from, static_cast<int>(bytes.size()))));
  return text;
}

std::string from_base64(std::string_view name, std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 1, '\0');
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  const auto* const from = reinterpret_cast<const unsigned char*>(text.data());
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  auto* const to = reinterpret_cast<unsigned char*>(bytes.data());
  const int size = text.size() % 4 == 0 ? EVP_DecodeBlock(to, from, static_cast<int>(text.size())) : -1;
  if (size < 0) refuse_invalid(std::string(name) + " is not base64");
  std::size_t padding = 0;
  while (padding < 2 && text.size() > padding && text[text.size() - 1 - padding] == '=') ++padding;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

json::value shown(std::string_view text) {
  if (utf8_length(text)) return json::string(text.data(), text.size());
  const std::string repaired = utf8_repaired(text);
  return json::string(repaired.data(), repaired.size());
}

void add_payload(json::object& object, PayloadKind kind, std::string_view payload) {
  object["payloadKind"] = kind == PayloadKind::json ? "json" : "bytes";
  if (kind == PayloadKind::json && utf8_length(payload)) {
    object["payload"] = json::string(payload.data(), payload.size());
  } else {
    object["payloadBase64"] = base64(payload);
  }
}

json::value headers_value(std::string_view headers_json) {
  if (headers_json.empty()) return nullptr;
  try {
    json::object all;
    for (const auto& [name, value] : decode_headers(headers_json)) all[name] = shown(value);
    return all;
  } catch (const Error&) {
    return shown(headers_json);  // another program's
  }
}

json::array history_json(const std::vector<FailedAttempt>& history) {
  json::array all;
  for (const FailedAttempt& one : history) {
    json::object line{{"attempt", one.attempt},
                      {"at", time_text(one.at)},
                      {"node", shown_or_null(one.node)},
                      {"outcome", to_string(one.outcome)},
                      {"error", shown_or_null(one.error)}};
    if (one.started_at) line["startedAt"] = time_text(*one.started_at);
    all.push_back(std::move(line));
  }
  return all;
}

json::object brief_json(const OutboxRecord& record) {
  return {{"id", record.id.view()},
          {"type", shown(record.type)},
          {"status", to_string(record.status)},
          {"attempts", static_cast<std::int32_t>(record.attempts)},
          {"aggregateType", shown_or_null(record.aggregate_type)},
          {"aggregateId", shown_or_null(record.aggregate_id)},
          {"tenantId", shown_or_null(record.tenant_id)},
          {"orderingKey", shown_or_null(record.ordering_key)},
          {"lastError", shown_or_null(record.last_error)},
          {"occurredAt", time_text(record.occurred_at)},
          {"createdAt", time_text(record.created_at)},
          {"availableAt", time_text(record.available_at)},
          {"doneAt", time_or_null(record.done_at)},
          // Without an owner it is no lease: the time hides an event that waits behind its key from claims.
          {"leaseUntil", record.owner.empty() ? json::value(nullptr) : time_or_null(record.lease_until)},
          {"owner", shown_or_null(record.owner)}};
}

json::object whole_json(const OutboxRecord& record) {
  json::object one = brief_json(record);
  one["history"] = history_json(record.history);
  one["headers"] = headers_value(record.headers_json);
  add_payload(one, record.payload_kind, record.payload);
  return one;
}

json::object brief_json(const QueueRecord& record) {
  return {{"id", static_cast<std::int64_t>(record.id)},
          {"eventId", shown(record.event_id)},
          {"type", shown(record.type)},
          {"status", to_string(record.status)},
          {"attempts", record.attempts},
          {"crashes", record.crashes},
          {"priority", record.priority},
          {"aggregateType", shown_or_null(record.aggregate_type)},
          {"aggregateId", shown_or_null(record.aggregate_id)},
          {"tenantId", shown_or_null(record.tenant_id)},
          {"orderingKey", shown_or_null(record.ordering_key)},
          {"dedupeKey", shown_or_null(record.dedupe_key)},
          {"lastError", shown_or_null(record.last_error)},
          {"occurredAt", time_text(record.occurred_at)},
          {"createdAt", time_text(record.created_at)},
          {"updatedAt", time_text(record.updated_at)},
          {"availableAt", time_text(record.available_at)},
          {"processingStartedAt", time_or_null(record.processing_started_at)},
          {"leaseUntil", time_or_null(record.lease_until)},
          {"quarantinedAt", time_or_null(record.quarantined_at)},
          {"owner", shown_or_null(record.owner)}};
}

json::object whole_json(const QueueRecord& record) {
  json::object one = brief_json(record);
  one["history"] = history_json(record.history);
  one["headers"] = headers_value(record.headers_json);
  add_payload(one, record.payload_kind, record.payload);
  return one;
}

json::value results_json(const std::vector<HandlerResult>& results) {
  json::array all;
  for (const HandlerResult& result : results) {
    all.push_back({{"handler", shown(result.handler)},
                   {"result", to_string(result.verdict)},
                   {"failed", static_cast<std::int32_t>(result.failed)},
                   {"error", shown_or_null(result.error)}});
  }
  return all;
}

json::object brief_json(const LogEntry& entry) {
  return event_json(entry);
}

json::object whole_json(const LogEntry& entry) {
  json::object one = event_json(entry);
  one["history"] = history_json(entry.history);
  if (entry.event) {
    one["headers"] = headers_value(entry.event->headers_json());
    add_payload(one, entry.event->payload_kind(), entry.event->payload());
  }
  return one;
}

json::object projection_json(const ProjectionStatus& status) {
  return {{"name", shown(status.name)},
          {"version", status.version},
          {"status", to_string(status.state)},
          {"live", status.live},
          {"position", static_cast<std::int64_t>(status.position)},
          {"head", static_cast<std::int64_t>(status.head)},
          {"lagEvents", status.lag_events},
          {"lagSeconds", seconds(status.lag_time)},
          {"owner", shown_or_null(status.owner)},
          {"failures", status.failures},
          {"lastError", shown_or_null(status.last_error)},
          {"skipped", status.skipped},
          {"createdAt", time_text(status.created_at)},
          {"updatedAt", time_text(status.updated_at)}};
}

json::object stored_json(const StoredEvent& event) {
  json::array tags;
  for (const Tag& tag : event.tags()) tags.push_back(shown(tag.encode()));
  json::object one{{"position", static_cast<std::int64_t>(event.position())},
                   {"id", event.id().view()},
                   {"type", shown(event.type())},
                   {"tags", std::move(tags)},
                   {"correlationId", shown_or_null(event.correlation_id())},
                   {"causationId", shown_or_null(event.causation_id())},
                   {"occurredAt", time_text(event.occurred_at())},
                   {"storedAt", time_text(event.stored_at())},
                   {"headers", headers_value(event.event().headers_json())}};
  add_payload(one, event.payload_kind(), event.data());
  return one;
}

}  // namespace postrider::api
