// SPDX-License-Identifier: Apache-2.0
#include "app/api/publish_api.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <map>
#include <set>
#include <utility>

#include "app/api/json_values.hpp"
#include "app/api/members.hpp"
#include "app/api/record_json.hpp"
#include "core/json_text.hpp"
#include "storage/outbox_search_store.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
using http::Method;
using http::Response;

constexpr std::size_t most_events = 1000;
constexpr std::size_t body_bytes = 8U << 20U;
/// Each means that somebody has published one of the ids between our look and our insert.
constexpr int most_tries = 5;

constexpr std::array<std::string_view, 12> members{
    "id",          "type",     "payload",     "payloadJson", "payloadBase64", "aggregateType",
    "aggregateId", "tenantId", "orderingKey", "headers",     "occurredAt",    "deliverAt"};

Event to_event(const json::object& object, const std::string& where) {
  const Members one(object, members, where, Nulls::mean_absent);
  const std::optional<std::string> type = one.text("type");
  if (!type)
    refuse_invalid(one.path("type") + " is missing",
                   R"(an event is {"type": "OrderPlaced", "payload": {…}})");
  EventBuilder builder = Event::builder(*type);
  const int given = int{one.has("payload")} + int{one.has("payloadJson")} + int{one.has("payloadBase64")};
  if (given > 1) refuse_invalid("give one of payload, payloadJson and payloadBase64");
  if (one.has("payloadBase64")) {
    builder.bytes(from_base64(one.path("payloadBase64"), one.text("payloadBase64").value_or("")));
  } else if (one.has("payloadJson")) {
    builder.json(one.text("payloadJson").value_or(""));
  } else {
    const json::value* const payload = object.if_contains("payload");  // `null` is a payload
    builder.json(payload == nullptr ? "{}" : json::serialize(*payload));
  }
  if (const auto id = one.text("id")) builder.id(EventId(*id));
  if (auto text = one.text("aggregateType")) builder.aggregate_type(AggregateType(std::move(*text)));
  if (auto text = one.text("aggregateId")) builder.aggregate_id(std::move(*text));
  if (auto text = one.text("tenantId")) builder.tenant(std::move(*text));
  if (auto text = one.text("orderingKey")) builder.ordering_key(std::move(*text));
  if (const json::object* const headers = one.object("headers")) {
    builder.headers(decode_headers(json::serialize(*headers)));
  }
  if (const auto time = one.time("occurredAt")) builder.occurred_at(*time);
  if (const auto time = one.time("deliverAt")) builder.deliver_at(*time);
  return builder.build();
}

/// The events of a body: one, or those of {"events": […]}; and whether it was one.
std::pair<std::vector<Event>, bool> read_events(const http::Request& request) {
  std::array<std::string_view, members.size() + 1> known{};
  std::copy(members.begin(), members.end(), known.begin());
  known.back() = "events";
  if (request.body.empty())
    refuse_invalid("the body is empty", R"(send {"type": "OrderPlaced", "payload": {…}})");
  const json::object object = json_body(request, known);
  std::vector<Event> events;
  if (!object.contains("events")) {
    events.push_back(to_event(object, {}));
    return {std::move(events), true};
  }
  constexpr std::array<std::string_view, 1> alone{"events"};
  const Members body(object, alone);
  const json::value* const value = body.value("events");
  const json::array* const list = value == nullptr ? nullptr : value->if_array();
  if (list == nullptr || list->empty() || list->size() > most_events) {
    refuse_invalid("events must be a list of 1 to " + std::to_string(most_events) + " events");
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string where = "events[" + std::to_string(i) + "].";
    const json::object* const one = list->at(i).if_object();
    if (one == nullptr) refuse_invalid("events[" + std::to_string(i) + "] must be an object");
    try {
      events.push_back(to_event(*one, where));
    } catch (const Error& error) {
      throw Error(error.code(), where, error.what());
    }
  }
  return {std::move(events), false};
}

void insert(const Call& call, Outbox* outbox, const std::vector<Event>& events) {
  Transaction tx = call.storage.begin();
  if (outbox != nullptr) {
    outbox->publish(tx, events);
  } else {
    std::vector<NewOutboxRow> rows;
    rows.reserve(events.size());
    for (const Event& event : events) rows.push_back({.event = &event, .ordering_key = event.ordering_key()});
    call.storage.outbox_store().check_schema();  // as an Outbox does when it is made
    call.storage.outbox_store().insert(tx, {}, rows);
  }
  tx.commit();
}

/// Those that are there already are left out, the rest goes into one transaction. Returns the ids that were
/// there.
std::set<EventId> publish_new(const Call& call, Outbox* outbox, const std::vector<Event>& events) {
  OutboxSearchStore& store = call.storage.outbox_search_store();
  std::vector<EventId> ids;
  ids.reserve(events.size());
  for (const Event& event : events) ids.push_back(event.id());
  for (int tries = 1;; ++tries) {
    const std::vector<EventId> found = store.known(ids);
    std::set<EventId> known(found.begin(), found.end());
    std::set<EventId> taken = known;
    std::vector<Event> fresh;
    for (const Event& event : events) {
      if (taken.insert(event.id()).second) fresh.push_back(event);
    }
    if (fresh.empty()) return known;
    try {
      insert(call, outbox, fresh);
      return known;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::conflict || tries == most_tries) throw;
    }
  }
}

Response publish(Call& call, const std::function<Outbox*()>& outbox) {
  only_parameters(call.request, {});
  const auto [events, alone] = read_events(call.request);
  std::set<EventId> seen = publish_new(call, outbox(), events);
  json::array results;
  bool any = false;
  for (const Event& event : events) {
    const bool created = seen.insert(event.id()).second;
    any = any || created;
    results.push_back({{"id", event.id().view()}, {"status", created ? "created" : "duplicate"}});
  }
  const int status = any ? 201 : 200;
  return alone ? json_response(results.front().get_object(), status)
               : json_response({{"results", std::move(results)}}, status);
}

}  // namespace

std::vector<ApiRoute> publish_routes(std::function<Outbox*()> outbox) {
  return {{.method = Method::post,
           .pattern = "/api/events",
           .role = Role::operator_,
           .body_limit = body_bytes,
           .handler = [outbox = std::move(outbox)](Call& call) { return publish(call, outbox); }}};
}

}  // namespace postrider::api
