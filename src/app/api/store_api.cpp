// SPDX-License-Identifier: Apache-2.0
#include "app/api/store_api.hpp"

#include <array>
#include <boost/json.hpp>
#include <limits>
#include <utility>

#include "app/api/json_values.hpp"
#include "app/api/members.hpp"
#include "app/api/record_json.hpp"
#include "core/json_text.hpp"
#include "core/utf8.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
using http::Method;
using http::Response;

/// Of GET /read, which has no pages.
constexpr std::size_t read_bytes = 32U << 20U;
constexpr std::size_t append_bytes = 8U << 20U;
constexpr std::int64_t most_positions = std::numeric_limits<std::int64_t>::max();

/// As in the suite tags are texts of any kind: one without `=` is a key without a value.
Tag tag_of(const std::string& text) {
  // A `=` that is escaped belongs to the key.
  bool escaped = false;
  for (const char c : text) {
    if (c == '=' && !escaped) return Tag::decode(text);
    escaped = c == '\\' && !escaped;
  }
  return Tag::decode(text + "=");
}

std::string text_of(const Tag& tag) {
  std::string text = tag.encode();
  if (tag.value.empty()) text.pop_back();
  return text;
}

Tags tags_of(const std::vector<std::string>& texts) {
  Tags tags;
  for (const std::string& text : texts) tags.push_back(tag_of(text));
  return tags;
}

/// {"items": [{"types": […], "tags": […]}, …]}; no items: all events.
Query query_of(const json::object& object, const std::string& where) {
  constexpr std::array<std::string_view, 1> known{"items"};
  constexpr std::array<std::string_view, 2> of_item{"types", "tags"};
  const Members members(object, known, where, Nulls::mean_absent);
  const json::value* const value = members.value("items");
  if (value == nullptr) return Query::all();
  const json::array* const list = value->if_array();
  if (list == nullptr) refuse_invalid(members.path("items") + " must be a list");
  if (list->empty()) return Query::all();
  std::vector<QueryItem> items;
  for (const json::value& one : *list) {
    const json::object* const item = one.if_object();
    if (item == nullptr) refuse_invalid(members.path("items") + " must be a list of objects");
    const Members parts(*item, of_item, where + "items.", Nulls::mean_absent);
    items.push_back({.types = parts.texts("types").value_or(std::vector<std::string>{}),
                     .tags = tags_of(parts.texts("tags").value_or(std::vector<std::string>{}))});
  }
  return Query::of(std::move(items));
}

/// A parameter that is JSON.
json::object json_parameter(const http::Request& request, std::string_view name) {
  const std::optional<std::string> text = query_text(request, name);
  if (!text) return {};
  constexpr std::size_t depth = 8;
  json::parse_options options;
  options.max_depth = depth;
  json::error_code error;
  const json::value value = json::parse(*text, error, {}, options);
  if (error)
    refuse_invalid(std::string(name) + " is not JSON: " + json_fault(*text, depth).value_or(error.message()));
  if (const auto loss = json_loss(*text, depth)) refuse_invalid(std::string(name) + ": " + *loss);
  if (!value.is_object()) refuse_invalid(std::string(name) + " must be a JSON object");
  return value.get_object();
}

/// The data as it came: text, or bytes that some program has put there.
json::object event_json(const StoredEvent& event) {
  json::array tags;
  for (const Tag& tag : event.tags()) tags.push_back(shown(text_of(tag)));
  json::object one{{"position", static_cast<std::int64_t>(event.position())},
                   {"type", shown(event.type())},
                   {"tags", std::move(tags)}};
  if (utf8_length(event.data())) {
    one["data"] = json::string(event.data().data(), event.data().size());
  } else {
    one["data"] = nullptr;
    one["dataBase64"] = base64(event.data());
  }
  one["id"] = event.id().view();
  return one;
}

Response read(Call& call, EventStore& store) {
  constexpr std::array<std::string_view, 2> known{"query", "options"};
  constexpr std::array<std::string_view, 4> known_options{"from", "after", "limit", "backwards"};
  only_parameters(call.request, known);
  const Query query = query_of(json_parameter(call.request, "query"), "query.");
  const json::object given = json_parameter(call.request, "options");
  const Members members(given, known_options, "options.", Nulls::mean_absent);
  ReadOptions options;
  if (const auto from = members.number("from", 0, most_positions)) options.from = Position{*from};
  if (const auto after = members.number("after", 0, most_positions)) options.after = Position{*after};
  if (const auto limit = members.number("limit", 0, most_positions))
    options.limit = static_cast<std::size_t>(*limit);
  options.backwards = members.flag("backwards").value_or(false);
  std::string body = "[";
  if (options.limit != std::size_t{0}) {
    EventStream events = store.read(query, options);
    while (const std::optional<StoredEvent> event = events.next()) {
      if (body.size() > 1) body += ',';
      body += json::serialize(event_json(*event));
      if (body.size() > read_bytes) {
        throw Refusal{
            {.status = 422,
             .code = "answer-too-large",
             .detail = "these are more than " + std::to_string(read_bytes >> 20U) + " MiB of events",
             .hint = "read them in parts: options.limit, then options.after with the last position"}};
      }
    }
  }
  return {.body = body + "]", .headers = {{"Cache-Control", "no-store"}}};
}

AppendEvent to_event(const json::value& value, std::size_t index) {
  constexpr std::array<std::string_view, 6> known{"type", "tags",          "data",
                                                  "id",   "correlationId", "causationId"};
  const std::string where = "events[" + std::to_string(index) + "].";
  const json::object* const object = value.if_object();
  if (object == nullptr) refuse_invalid("events[" + std::to_string(index) + "] must be an object");
  const Members one(*object, known, where, Nulls::mean_absent);
  const std::optional<std::string> type = one.text("type");
  if (!type) refuse_invalid(where + "type is missing");
  AppendEventBuilder builder = AppendEvent::builder(*type);
  builder.tags(tags_of(one.texts("tags").value_or(std::vector<std::string>{})));
  if (const json::value* const data = one.value("data")) {
    if (!data->is_string()) {
      builder.data(json::serialize(*data));
    } else {
      std::string text = one.text("data").value_or("");
      // Text that is JSON is stored as such; it comes back byte for byte either way.
      json_fault(text, EventLimits::json_depth) ? builder.bytes(std::move(text))
                                                : builder.data(std::move(text));
    }
  }
  if (const auto id = one.text("id")) builder.id(EventId(*id));
  if (auto id = one.text("correlationId")) builder.correlation_id(std::move(*id));
  if (auto id = one.text("causationId")) builder.causation_id(std::move(*id));
  return builder.build();
}

Response append(Call& call, EventStore& store) {
  constexpr std::array<std::string_view, 2> known{"events", "condition"};
  constexpr std::array<std::string_view, 2> of_condition{"failIfEventsMatch", "after"};
  only_parameters(call.request, {});
  const SteadyPoint begin = Clock::system().steady_now();
  const json::object object = json_body(call.request, known);
  const Members body(object, known, {}, Nulls::mean_absent);
  const json::value* const value = body.value("events");
  std::vector<AppendEvent> events;
  if (value != nullptr && value->is_array()) {
    const json::array& list = value->get_array();
    for (std::size_t i = 0; i < list.size(); ++i) events.push_back(to_event(list[i], i));
  } else if (value != nullptr && value->is_object()) {
    events.push_back(to_event(*value, 0));
  } else {
    refuse_invalid("events is missing",
                   R"(send {"events": [{"type": "…", "tags": ["key=value"], "data": "…"}]})");
  }
  AppendResult result;
  if (const json::object* const given = body.object("condition")) {
    const Members members(*given, of_condition, "condition.", Nulls::mean_absent);
    const json::object* const query = members.object("failIfEventsMatch");
    if (query == nullptr) refuse_invalid("condition.failIfEventsMatch is missing");
    AppendCondition condition{.query = query_of(*query, "condition.failIfEventsMatch.")};
    if (const auto after = members.number("after", 0, most_positions)) condition.after = Position{*after};
    result = store.append_if(events, condition);
  } else {
    result = store.append(events);
  }
  const Duration took = std::chrono::duration_cast<Duration>(Clock::system().steady_now() - begin);
  json::object answer{{"durationInMicroseconds", took.count()}};
  if (const Appended* const appended = std::get_if<Appended>(&result)) {
    answer["appendConditionFailed"] = false;
    answer["firstPosition"] = static_cast<std::int64_t>(appended->first);
    answer["lastPosition"] = static_cast<std::int64_t>(appended->last);
  } else {
    const Conflict& conflict = std::get<Conflict>(result);
    answer["appendConditionFailed"] = true;
    answer["conflict"] = json::object{{"position", static_cast<std::int64_t>(conflict.position)},
                                      {"type", shown(conflict.type)}};
  }
  return json_response(answer);
}

/// A page by types (any of them) and tags (all of them).
Response list(Call& call, EventStore& store) {
  constexpr std::array<std::string_view, 6> known{"type", "tag", "after", "backwards", "limit", "cursor"};
  only_parameters(call.request, known);
  QueryItem item{.types = query_texts(call.request, "type").value_or(std::vector<std::string>{}),
                 .tags = tags_of(query_texts(call.request, "tag").value_or(std::vector<std::string>{}))};
  const auto limit = static_cast<std::size_t>(query_number(call.request, "limit", 100, 1, most_listed));
  ReadOptions options{
      .limit = limit + 1, .backwards = query_flag(call.request, "backwards"), .page_size = limit + 1};
  if (query_value(call.request, "after")) {
    options.after = Position{query_number(call.request, "after", 0, 0, most_positions)};
  }
  if (const auto place = read_cursor(call.request, 1)) options.after = Position{cursor_number(place->at(0))};
  EventStream stream = store.read(Query::of({std::move(item)}), options);
  json::array events;
  std::size_t bytes = 0;
  json::value next = nullptr;
  Position last{};
  while (const std::optional<StoredEvent> event = stream.next()) {
    if (events.size() == limit || bytes > page_bytes) {
      const std::array<std::string, 1> place{std::to_string(static_cast<std::int64_t>(last))};
      next = json::value(make_cursor(call.request, place));
      break;
    }
    bytes += event->data().size();
    last = event->position();
    events.push_back(stored_json(*event));
  }
  return json_response({{"events", std::move(events)},
                        {"head", static_cast<std::int64_t>(stream.head())},
                        {"nextCursor", std::move(next)}});
}

}  // namespace

std::vector<ApiRoute> store_routes(EventStore& store) {
  return {
      {.pattern = "/read", .handler = [&store](Call& call) { return read(call, store); }},
      {.method = Method::post,
       .pattern = "/append",
       .role = Role::admin,
       .body_limit = append_bytes,
       .handler = [&store](Call& call) { return append(call, store); }},
      {.pattern = "/api/store/head",
       .handler =
           [&store](Call& call) {
             only_parameters(call.request, {});
             return json_response({{"head", static_cast<std::int64_t>(store.head())}});
           }},
      {.pattern = "/api/store/events", .handler = [&store](Call& call) { return list(call, store); }},
  };
}

}  // namespace postrider::api
