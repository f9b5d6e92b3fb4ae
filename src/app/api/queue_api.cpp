// SPDX-License-Identifier: Apache-2.0
#include "app/api/queue_api.hpp"

#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <utility>

#include "app/api/filter_change.hpp"
#include "app/api/json_values.hpp"
#include "app/api/members.hpp"
#include "app/api/record_json.hpp"
#include "postrider/event_log.hpp"
#include "postrider/projection.hpp"
#include "postrider/queue_admin.hpp"
#include "storage/log_store.hpp"
#include "storage/queue_store.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
using http::Method;
using http::Response;

/// Rows are read with their payloads, of which few may be in memory at a time.
constexpr std::size_t rows_at_once = 25;

QueueStatus status_of(const std::string& text) {
  for (const QueueStatus status : {QueueStatus::pending, QueueStatus::processing, QueueStatus::completed,
                                   QueueStatus::completed_with_errors, QueueStatus::failed}) {
    if (text == to_string(status)) return status;
  }
  refuse_invalid("there is no status '" + text + "'",
                 "there are PENDING and PROCESSING in the queue; COMPLETED, COMPLETED_WITH_ERRORS and FAILED "
                 "in the log");
}

std::vector<QueueStatus> statuses_of(const std::vector<std::string>& texts) {
  std::vector<QueueStatus> all;
  all.reserve(texts.size());
  for (const std::string& text : texts) all.push_back(status_of(text));
  return all;
}

QueueId queue_id_of(const Call& call) {
  const std::string_view text = call.request.parameter("id");
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size() || number < 1) {
    refuse_missing("no event of the queue can have this id",
                   "it is a number; GET /api/queue/events?eventId= finds an event by its own id");
  }
  return QueueId{number};
}

Response queue_counts(Call& call) {
  only_parameters(call.request, {});
  const QueueCounts counts = QueueAdmin(call.storage).counts();
  json::object attempts;
  for (const auto& [number, events] : QueueAdmin(call.storage).attempts()) {
    attempts[std::to_string(number)] = events;
  }
  return json_response({{"pending", counts.pending},
                        {"delayed", counts.delayed},
                        {"processing", counts.processing},
                        {"abandoned", counts.abandoned},
                        {"quarantined", counts.quarantined},
                        {"oldestPendingSeconds", seconds(counts.oldest_pending)},
                        {"attempts", std::move(attempts)}});
}

/// A page of the queue. One row more than asked for tells whether there is another.
Response list_response(const Call& call, const QueueFilter& filter) {
  const auto limit = static_cast<std::size_t>(query_number(call.request, "limit", 100, 1, most_listed));
  QueueId after{};
  if (const auto place = read_cursor(call.request, 1)) after = QueueId{cursor_number(place->at(0))};
  json::array events;
  QueueId last = after;
  bool more = false;
  for (bool end = false; !end && !more;) {
    const std::size_t wanted = std::min(rows_at_once, limit - events.size() + 1);
    const std::vector<QueueRecord> some = QueueAdmin(call.storage).list(filter, wanted, last);
    end = some.size() < wanted;
    for (const QueueRecord& record : some) {
      if (events.size() == limit) {
        more = true;
        break;
      }
      events.push_back(brief_json(record));
      last = record.id;
    }
  }
  json::value next = nullptr;
  if (more) {
    const std::array<std::string, 1> place{std::to_string(static_cast<std::int64_t>(last))};
    next = json::value(make_cursor(call.request, place));
  }
  return json_response({{"events", std::move(events)}, {"nextCursor", std::move(next)}});
}

std::vector<EventId> event_ids_of(const std::vector<std::string>& texts) {
  return std::vector<EventId>(texts.begin(), texts.end());
}

QueueFilter query_filter(const http::Request& request) {
  QueueFilter filter;
  if (const auto statuses = query_texts(request, "status")) filter.statuses = statuses_of(*statuses);
  if (const auto types = query_texts(request, "type")) filter.types = *types;
  if (const auto ids = query_texts(request, "eventId")) filter.event_ids = event_ids_of(*ids);
  filter.tenant_id = query_text(request, "tenantId");
  filter.error_contains = query_text(request, "errorContains");
  if (const auto age = query_text(request, "olderThan")) filter.older_than = age_of("olderThan", *age);
  if (query_value(request, "attemptsAtLeast")) {
    filter.attempts_at_least =
        static_cast<std::int32_t>(query_number(request, "attemptsAtLeast", 0, 0, 1'000'000'000));
  }
  if (query_value(request, "delayed")) filter.delayed = query_flag(request, "delayed");
  return filter;
}

Response events(Call& call) {
  constexpr std::array<std::string_view, 11> known{
      "status",  "type",        "eventId", "tenantId", "olderThan",    "attemptsAtLeast",
      "delayed", "quarantined", "limit",   "cursor",   "errorContains"};
  only_parameters(call.request, known);
  QueueFilter filter = query_filter(call.request);
  if (query_value(call.request, "quarantined")) filter.quarantined = query_flag(call.request, "quarantined");
  return list_response(call, filter);
}

Response stuck(Call& call, Duration stuck_after) {
  constexpr std::array<std::string_view, 3> known{"for", "limit", "cursor"};
  only_parameters(call.request, known);
  QueueFilter filter{.stuck_for = stuck_after};
  if (const auto age = query_text(call.request, "for")) filter.stuck_for = age_of("for", *age);
  return list_response(call, filter);
}

Response quarantine(Call& call) {
  constexpr std::array<std::string_view, 2> known{"limit", "cursor"};
  only_parameters(call.request, known);
  return list_response(call, {.quarantined = true});
}

/// In the queue with what its handlers have said so far, or in the log with what they said in the end.
Response queue_event(Call& call) {
  only_parameters(call.request, {});
  const QueueId id = queue_id_of(call);
  if (const std::optional<QueueRecord> record = QueueAdmin(call.storage).find(id)) {
    std::vector<HandlerResult> results;
    for (QueueStore::EventState& state : call.storage.queue_store().load_states({&id, 1})) {
      results.push_back(std::move(state.result));
    }
    json::object one = whole_json(*record);
    one["results"] = results_json(results);
    return json_response(one);
  }
  if (const std::optional<LogEntry> entry = EventLog(call.storage).find(id)) {
    return json_response(whole_json(*entry));
  }
  refuse_missing("there is no event with this id, neither in the queue nor in its log",
                 "entries of the log are removed after queue.purge-log-after");
}

Response log(Call& call) {
  constexpr std::array<std::string_view, 7> known{"status",    "type",  "eventId", "after",
                                                  "backwards", "limit", "cursor"};
  only_parameters(call.request, known);
  LogFilter filter;
  if (const auto statuses = query_texts(call.request, "status")) filter.statuses = statuses_of(*statuses);
  if (const auto types = query_texts(call.request, "type")) filter.types = *types;
  if (const auto ids = query_texts(call.request, "eventId")) filter.event_ids = event_ids_of(*ids);
  const bool backwards = query_flag(call.request, "backwards");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  LogSeq from{query_number(call.request, "after", backwards ? most : 0, 0, most)};
  if (const auto place = read_cursor(call.request, 1)) from = LogSeq{cursor_number(place->at(0))};
  const auto limit = static_cast<std::size_t>(query_number(call.request, "limit", 100, 1, most_listed));
  EventLog event_log(call.storage);
  if (backwards) call.storage.queue_store().sequence_log();  // what has no number yet is the newest
  const LogPage page = backwards ? call.storage.log_store().read_back(from, limit, filter)
                                 : event_log.read(from, limit, filter);
  const LogSeq head = event_log.head();
  const bool more = backwards ? page.scanned_to != LogSeq{} : page.scanned_to < head;
  json::array entries;
  for (const LogEntry& entry : page.entries) entries.push_back(brief_json(entry));
  json::value next = nullptr;
  if (more) {
    const std::array<std::string, 1> place{std::to_string(static_cast<std::int64_t>(page.scanned_to))};
    next = json::value(make_cursor(call.request, place));
  }
  return json_response({{"entries", std::move(entries)},
                        {"head", static_cast<std::int64_t>(head)},
                        {"nextCursor", std::move(next)}});
}

QueueFilter body_filter(const Members& body, bool of_log) {
  constexpr std::array<std::string_view, 11> known{
      "ids",       "eventIds", "types",       "statuses", "tenantId", "errorContains", "attemptsAtLeast",
      "olderThan", "stuckFor", "quarantined", "delayed"};
  constexpr std::size_t of_both = 8;
  const Members members(body.filter(R"("types": ["OrderPlaced"])"),
                        of_log ? std::span(known).first(of_both) : std::span(known), "filter.");
  QueueFilter filter;
  if (const auto ids = members.numbers("ids")) {
    std::vector<QueueId> wanted;
    for (const std::int64_t id : *ids) wanted.push_back(QueueId{id});
    filter.ids = std::move(wanted);
  }
  if (auto ids = members.event_ids("eventIds")) filter.event_ids = std::move(*ids);
  if (auto types = members.texts("types")) filter.types = std::move(*types);
  if (const auto statuses = members.texts("statuses")) filter.statuses = statuses_of(*statuses);
  filter.tenant_id = members.text("tenantId");
  filter.error_contains = members.text("errorContains");
  if (const auto attempts = members.number("attemptsAtLeast", 0, 1'000'000'000)) {
    filter.attempts_at_least = static_cast<std::int32_t>(*attempts);
  }
  if (const auto age = members.text("olderThan")) filter.older_than = age_of("filter.olderThan", *age);
  if (of_log) return filter;
  if (const auto age = members.text("stuckFor")) filter.stuck_for = age_of("filter.stuckFor", *age);
  filter.quarantined = members.flag("quarantined");
  filter.delayed = members.flag("delayed");
  return filter;
}

enum class QueueVerb { requeue, cancel, release, replay };

std::string_view name_of(QueueVerb verb) {
  switch (verb) {
    case QueueVerb::requeue:
      return "requeue";
    case QueueVerb::cancel:
      return "cancel";
    case QueueVerb::release:
      return "release";
    case QueueVerb::replay:
      return "replay";
  }
  return {};
}

Response change(Call& call, QueueVerb verb) {
  const auto run = [&](const QueueFilter& filter, const std::string& reason, bool dry_run) {
    QueueAdmin admin(call.storage);
    switch (verb) {
      case QueueVerb::requeue:
        return admin.requeue(filter, dry_run);
      case QueueVerb::cancel:
        return admin.cancel(filter, reason, dry_run);
      case QueueVerb::release:
        return admin.release(filter, dry_run);
      case QueueVerb::replay:
        break;
    }
    return admin.replay(filter, dry_run);
  };
  return change_by_filter(
      call, {name_of(verb), "events of the queue", verb == QueueVerb::cancel ? "cancelled by " : ""},
      [&](const Members& body) { return body_filter(body, verb == QueueVerb::replay); }, run,
      [](const QueueFilter&) { return json::object(); });
}

Response projections(Call& call) {
  only_parameters(call.request, {});
  json::array all;
  for (const ProjectionStatus& one : ProjectionAdmin(call.storage).list())
    all.push_back(projection_json(one));
  return json_response({{"projections", std::move(all)}});
}

Response change_projection(Call& call, bool pause) {
  constexpr std::array<std::string_view, 1> known{"version"};
  only_parameters(call.request, known);
  const std::string name(call.request.parameter("name"));
  const auto version = static_cast<int>(query_number(call.request, "version", 0, 0, 1'000'000'000));
  ProjectionAdmin admin(call.storage);
  const std::vector<ProjectionStatus> all = admin.list();
  const bool known_one = std::any_of(all.begin(), all.end(), [&](const ProjectionStatus& one) {
    return one.name == name && (version == 0 ? one.live : one.version == version);
  });
  if (!known_one)
    refuse_missing("there is no such projection",
                   "GET /api/projections lists them; without version the live one is meant");
  pause ? admin.pause(name, version) : admin.resume(name, version);
  call.done = (pause ? "pause" : "resume") + std::string(" projection ") + name;
  return json_response(projection_json(admin.status(name, version)));
}

}  // namespace

std::vector<ApiRoute> queue_routes(Duration stuck_after) {
  constexpr std::size_t filter_body = 1U << 20U;
  std::vector<ApiRoute> routes{
      {.pattern = "/api/queue/counts", .handler = queue_counts},
      {.pattern = "/api/queue/events", .handler = events},
      {.pattern = "/api/queue/events/{id}", .handler = queue_event},
      {.pattern = "/api/queue/stuck",
       .handler = [stuck_after](Call& call) { return stuck(call, stuck_after); }},
      {.pattern = "/api/queue/quarantine", .handler = quarantine},
      {.pattern = "/api/queue/log", .handler = log},
      {.pattern = "/api/projections", .handler = projections},
  };
  for (const QueueVerb verb :
       {QueueVerb::requeue, QueueVerb::cancel, QueueVerb::release, QueueVerb::replay}) {
    routes.push_back({.method = Method::post,
                      .pattern = "/api/queue/" + std::string(name_of(verb)),
                      .role = Role::operator_,
                      .body_limit = filter_body,
                      .handler = [verb](Call& call) { return change(call, verb); }});
  }
  for (const bool pause : {true, false}) {
    routes.push_back({.method = Method::post,
                      .pattern = std::string("/api/projections/{name}/") + (pause ? "pause" : "resume"),
                      .role = Role::operator_,
                      .handler = [pause](Call& call) { return change_projection(call, pause); }});
  }
  return routes;
}

}  // namespace postrider::api
