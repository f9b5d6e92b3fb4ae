// SPDX-License-Identifier: Apache-2.0
#include "app/api/outbox_api.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <set>
#include <utility>

#include "app/api/counts_json.hpp"
#include "app/api/error_groups.hpp"
#include "app/api/filter_change.hpp"
#include "app/api/json_values.hpp"
#include "app/api/members.hpp"
#include "app/api/record_json.hpp"
#include "core/json_text.hpp"
#include "core/rfc3339.hpp"
#include "postrider/outbox_admin.hpp"
#include "storage/outbox_search_store.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
using http::Method;
using http::Response;

constexpr std::size_t most_unknown_named = 100;
constexpr std::size_t most_ids = 10'000;  // that a filter may have
constexpr std::size_t most_action_bytes = 64;
constexpr std::size_t grouped_letters = 10'000;
constexpr std::size_t grouped_chars = 300;
constexpr std::size_t most_groups = 100;
constexpr std::size_t purged_per_call = 100'000;
constexpr Duration stuck_after = std::chrono::minutes{5};

OutboxAdmin admin(const Call& call) {
  return OutboxAdmin(call.storage);
}

EventId id_of(const Call& call) {
  try {
    return EventId(call.request.parameter("id"));
  } catch (const Error&) {
    refuse_missing("no event can have this id", "an id has 1 to 36 printable characters without spaces");
  }
}

Response counts(Call& call) {
  only_parameters(call.request, {});
  return json_response(counts_json(admin(call).counts()));
}

Response one_event(Call& call) {
  only_parameters(call.request, {});
  const std::optional<OutboxRecord> record = admin(call).find(id_of(call));
  if (!record) {
    refuse_missing("there is no event with this id in the outbox",
                   "finished events are removed after outbox.purge-done-after");
  }
  return json_response(whole_json(*record));
}

/// Which list has the events of a status, and which of its events they are.
void set_status(OutboxSearch& search, const std::string& status) {
  if (status == "PENDING") {
    search.list = OutboxList::pending;
  } else if (status == "NEW" || status == "RETRY") {
    search.list = OutboxList::pending;
    search.status = status == "NEW" ? EventStatus::fresh : EventStatus::retry;
  } else if (status == "DONE") {
    search.list = OutboxList::done;
  } else if (status == "DEAD") {
    search.list = OutboxList::dead;
  } else {
    refuse_invalid("there is no status '" + status + "'", "there are PENDING, NEW, RETRY, DONE and DEAD");
  }
}

/// How long a page is, and where it begins.
void set_place(OutboxSearch& search, const http::Request& request) {
  search.limit = static_cast<std::size_t>(query_number(request, "limit", 100, 1, most_listed));
  const auto place = read_cursor(request, 3);
  if (!place) return;
  OutboxMark mark{.at = TimePoint{Duration{cursor_number(place->at(0))}}, .seq = cursor_number(place->at(1))};
  try {
    mark.id = EventId(place->at(2));
  } catch (const Error&) {
    mark.at = end_of_time;
  }
  // Somebody has made it himself. Not every database can compare with times that it cannot store.
  if (mark.at < first_time || mark.at >= end_of_time) {
    refuse_invalid("cursor does not come from a page of this list");
  }
  search.after = mark;
}

void set_filter(OutboxSearch& search, const http::Request& request) {
  set_place(search, request);
  search.type = query_text(request, "type");
  search.aggregate_type = query_text(request, "aggregateType");
  search.aggregate_id = query_text(request, "aggregateId");
  search.tenant_id = query_text(request, "tenantId");
  search.error_contains = query_text(request, "errorContains");
  search.from = query_time(request, "from");
  search.until = query_time(request, "to");
}

Response page_response(const Call& call, const OutboxSearch& search) {
  const OutboxPage page = call.storage.outbox_search_store().search(search);
  json::array events;
  for (const OutboxRecord& record : page.records) events.push_back(brief_json(record));
  json::value next = nullptr;
  if (page.next) {
    const std::array<std::string, 3> place{std::to_string(page.next->at.time_since_epoch().count()),
                                           std::to_string(page.next->seq), page.next->id.str()};
    next = json::value(make_cursor(call.request, place));
  }
  return json_response({{"events", std::move(events)}, {"nextCursor", std::move(next)}});
}

Response search(Call& call) {
  constexpr std::array<std::string_view, 10> known{"status",   "type",  "aggregateType", "aggregateId",
                                                   "tenantId", "from",  "errorContains", "to",
                                                   "limit",    "cursor"};
  only_parameters(call.request, known);
  OutboxSearch search;
  if (const auto status = query_text(call.request, "status")) set_status(search, *status);
  set_filter(search, call.request);
  return page_response(call, search);
}

Response dead(Call& call) {
  constexpr std::array<std::string_view, 9> known{
      "type", "aggregateType", "aggregateId", "tenantId", "errorContains", "from", "to", "limit", "cursor"};
  only_parameters(call.request, known);
  OutboxSearch search{.list = OutboxList::dead};
  set_filter(search, call.request);
  return page_response(call, search);
}

Response stuck(Call& call) {
  constexpr std::array<std::string_view, 3> known{"for", "limit", "cursor"};
  only_parameters(call.request, known);
  OutboxSearch search{.list = OutboxList::pending, .rows = PendingRows{}};
  const auto age = query_text(call.request, "for");
  search.rows->filter.stuck_for = age ? age_of("for", *age) : stuck_after;
  set_place(search, call.request);
  return page_response(call, search);
}

EventStatus pending_status(const std::string& text) {
  for (const EventStatus status : {EventStatus::fresh, EventStatus::retry}) {
    if (text == to_string(status)) return status;
  }
  refuse_invalid("there is no pending status '" + text + "'", "there are NEW and RETRY");
}

OutboxFilter pending_filter(const Members& body) {
  constexpr std::array<std::string_view, 12> known{
      "ids",   "types",     "statuses",      "aggregateType",   "aggregateId", "tenantId",
      "owner", "olderThan", "errorContains", "attemptsAtLeast", "stuckFor",    "delayed"};
  const Members members(body.filter(R"("types": ["OrderPlaced"])"), known, "filter.");
  OutboxFilter filter;
  if (auto ids = members.event_ids("ids")) filter.ids = std::move(*ids);
  if (auto types = members.texts("types")) filter.types = std::move(*types);
  if (const auto statuses = members.texts("statuses")) {
    std::vector<EventStatus> wanted;
    for (const std::string& status : *statuses) wanted.push_back(pending_status(status));
    filter.statuses = std::move(wanted);
  }
  filter.aggregate_type = members.text("aggregateType");
  filter.aggregate_id = members.text("aggregateId");
  filter.tenant_id = members.text("tenantId");
  filter.owner = members.text("owner");
  filter.error_contains = members.text("errorContains");
  if (const auto attempts = members.number("attemptsAtLeast", 0, 1'000'000'000)) {
    filter.attempts_at_least = static_cast<std::int32_t>(*attempts);
  }
  if (const auto age = members.text("olderThan")) filter.older_than = age_of("filter.olderThan", *age);
  if (const auto age = members.text("stuckFor")) filter.stuck_for = age_of("filter.stuckFor", *age);
  filter.delayed = members.flag("delayed");
  return filter;
}

/// Of the ids that somebody has named those of which there is no event: typed wrongly, or purged.
json::object unknown_ids(const Call& call, const FilterList<EventId>& ids) {
  json::object answer;
  if (!ids.is_set() || ids.size() > most_ids) return answer;  // so many are refused
  std::set<EventId> unknown(ids.values().begin(), ids.values().end());
  for (const EventId& id : call.storage.outbox_search_store().known(ids.values())) unknown.erase(id);
  json::array named;
  for (const EventId& id : unknown) {
    if (named.size() == most_unknown_named) break;
    named.emplace_back(id.str());
  }
  answer["unknown"] = unknown.size();
  answer["unknownIds"] = std::move(named);
  return answer;
}

Response requeue(Call& call) {
  return change_by_filter(
      call, {"requeue", "events of the outbox"}, pending_filter,
      [&](const OutboxFilter& filter, const std::string& /*reason*/, bool dry_run) {
        return admin(call).requeue(filter, dry_run);
      },
      [&](const OutboxFilter& filter) { return unknown_ids(call, filter.ids); });
}

Response cancel(Call& call) {
  return change_by_filter(
      call, {"cancel", "events of the outbox", "by "}, pending_filter,
      [&](const OutboxFilter& filter, const std::string& reason, bool dry_run) {
        return admin(call).cancel(filter, reason, dry_run);
      },
      [&](const OutboxFilter& filter) { return unknown_ids(call, filter.ids); });
}

Response groups(Call& call) {
  only_parameters(call.request, {});
  const std::vector<DeadError> errors =
      call.storage.outbox_search_store().dead_errors(grouped_letters, grouped_chars);
  const ErrorGroups all = group_errors(errors, most_groups);
  json::array list;
  for (const ErrorGroup& group : all.groups) list.push_back(group_json(group));
  return json_response({{"groups", std::move(list)},
                        {"otherEvents", all.others},
                        {"lookedAt", errors.size()},
                        {"complete", errors.size() < grouped_letters}});
}

DeadLetterFilter dead_filter(const Members& body) {
  constexpr std::array<std::string_view, 8> known{"ids",      "type",          "aggregateType", "aggregateId",
                                                  "tenantId", "errorContains", "diedAfter",     "diedBefore"};
  const Members members(body.filter(R"("type": "OrderPlaced")"), known, "filter.");
  DeadLetterFilter filter;
  if (auto ids = members.event_ids("ids")) filter.ids = std::move(*ids);
  filter.type = members.text("type");
  filter.aggregate_type = members.text("aggregateType");
  filter.aggregate_id = members.text("aggregateId");
  filter.tenant_id = members.text("tenantId");
  filter.error_contains = members.text("errorContains");
  filter.died_after = members.time("diedAfter");
  filter.died_before = members.time("diedBefore");
  return filter;
}

Response replay(Call& call) {
  constexpr std::int64_t a_year = 365 * 86'400;
  constexpr std::array<std::string_view, 6> known{"filter", "dryRun",         "rate",
                                                  "limit",  "startInSeconds", "action"};
  const json::object object = json_body(call.request, known);
  const Members body(object, known);
  const DeadLetterFilter filter = dead_filter(body);
  if (body.flag("dryRun").value_or(false)) {
    json::object answer = unknown_ids(call, filter.ids);
    answer["dryRun"] = true;
    answer["events"] = admin(call).count_dead_letters(filter);
    return json_response(answer);
  }
  ReplayOptions options;
  options.at_most = static_cast<std::size_t>(body.number("limit", 1, 10'000).value_or(10'000));
  if (const auto rate = body.number("rate", 1, 100'000)) options.rate = static_cast<std::int32_t>(*rate);
  options.start_in = body.seconds("startInSeconds", a_year).value_or(Duration::zero());
  const std::optional<std::string> action = body.text("action");
  if (action && (action->empty() || action->size() > most_action_bytes)) {
    refuse_invalid("action must have 1 to " + std::to_string(most_action_bytes) + " bytes",
                   "choose one at random, and send it with each piece of the same change");
  }
  json::object shared;  // by all pieces of an action
  for (const char* const name : {"filter", "rate"}) {
    if (const json::value* const value = object.if_contains(name)) shared[name] = *value;
  }
  const std::string what = "dead letters, " + json::serialize(action ? shared : object);
  json::object answer = unknown_ids(call, filter.ids);
  call.tried = "replay " + what;
  const Replayed replayed = admin(call).replay_some(filter, options);
  if (replayed.events > 0) {
    const AuditPiece piece{
        .action = action.value_or(""), .verb = "replay", .events = replayed.events, .of = what};
    call.done = piece.text(piece.events);
    if (action) call.piece = piece;
  }
  answer["dryRun"] = false;
  answer["events"] = replayed.events;
  answer["left"] = replayed.left;
  answer["nextStartInSeconds"] = seconds(replayed.next_in);
  return json_response(answer);
}

Response edit(Call& call) {
  constexpr std::array<std::string_view, 4> known{"payload", "payloadJson", "payloadBase64", "headers"};
  const json::object object = json_body(call.request, known);
  const Members body(object, known, {}, Nulls::mean_absent);
  const EventId id = id_of(call);
  const int given = int{body.has("payload")} + int{body.has("payloadJson")} + int{body.has("payloadBase64")};
  if (given != 1) {
    refuse_invalid("give one of payload, payloadJson and payloadBase64",
                   "payload is any JSON, payloadJson its text, kept byte for byte");
  }
  PayloadKind kind = PayloadKind::json;
  std::string payload;
  if (const json::value* const value = body.value("payload")) {
    payload = json::serialize(*value);
  } else if (body.has("payloadJson")) {
    payload = body.text("payloadJson").value_or("");
  } else {
    kind = PayloadKind::bytes;
    payload = from_base64("payloadBase64", body.text("payloadBase64").value_or(""));
  }
  std::optional<Headers> headers;
  if (const json::object* const given_headers = body.object("headers")) {
    headers = decode_headers(json::serialize(*given_headers));
  }
  if (!admin(call).edit_dead_letter(id, kind, std::move(payload), std::move(headers))) {
    refuse_missing("there is no dead letter with this id", "GET /api/outbox/events/{id} says how it stands");
  }
  call.done = "edit dead letter " + id.str();
  return json_response(whole_json(admin(call).find(id).value_or(OutboxRecord{})));
}

Response purge(Call& call) {
  constexpr std::array<std::string_view, 4> known{"status", "olderThan", "dryRun", "limit"};
  const json::object object = json_body(call.request, known);
  const Members body(object, known);
  const std::string status = body.text("status").value_or("DONE");
  if (status != "DONE" && status != "DEAD") {
    refuse_invalid("status must be DONE or DEAD", "pending events are never removed");
  }
  const std::optional<std::string> age = body.text("olderThan");
  if (!age) refuse_invalid("olderThan is missing", R"(say how old: {"olderThan": "7d"})");
  PurgeOptions options{.status = status == "DONE" ? EventStatus::done : EventStatus::dead,
                       .older_than = age_of("olderThan", *age),
                       .dry_run = body.flag("dryRun").value_or(false)};
  options.at_most = static_cast<std::size_t>(
      body.number("limit", 1, static_cast<std::int64_t>(purged_per_call)).value_or(purged_per_call));
  if (!options.dry_run) call.tried = "purge " + status + " events older than " + *age;
  const std::int64_t purged = admin(call).purge(options);
  if (!options.dry_run && purged > 0) {
    call.done = "purge " + std::to_string(purged) + " " + status + " events older than " + *age;
  }
  return json_response({{"dryRun", options.dry_run},
                        {"events", purged},
                        {"complete", purged < static_cast<std::int64_t>(*options.at_most)}});
}

}  // namespace

std::vector<ApiRoute> outbox_routes() {
  constexpr std::size_t filter_body = 1U << 20U;  // ten thousand ids
  constexpr std::size_t payload_body = 8U << 20U;
  constexpr std::size_t small_body = 4096;
  return {
      {.pattern = "/api/outbox/counts", .handler = counts},
      {.pattern = "/api/outbox/events", .handler = search},
      {.pattern = "/api/outbox/events/{id}", .handler = one_event},
      {.pattern = "/api/outbox/stuck", .handler = stuck},
      {.method = Method::post,
       .pattern = "/api/outbox/requeue",
       .role = Role::operator_,
       .body_limit = filter_body,
       .handler = requeue},
      {.method = Method::post,
       .pattern = "/api/outbox/cancel",
       .role = Role::operator_,
       .body_limit = filter_body,
       .handler = cancel},
      {.pattern = "/api/outbox/dead", .handler = dead},
      {.pattern = "/api/outbox/dead/groups", .handler = groups},
      {.method = Method::post,
       .pattern = "/api/outbox/dead/replay",
       .role = Role::operator_,
       .body_limit = filter_body,
       .handler = replay},
      {.method = Method::post,
       .pattern = "/api/outbox/dead/{id}/edit",
       .role = Role::admin,
       .body_limit = payload_body,
       .handler = edit},
      {.method = Method::post,
       .pattern = "/api/outbox/purge",
       .role = Role::admin,
       .body_limit = small_body,
       .handler = purge},
  };
}

}  // namespace postrider::api
