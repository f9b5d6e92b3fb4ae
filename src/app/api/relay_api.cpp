// SPDX-License-Identifier: Apache-2.0
#include "app/api/relay_api.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <limits>
#include <map>
#include <utility>

#include "app/api/json_values.hpp"
#include "app/api/members.hpp"
#include "app/api/record_json.hpp"
#include "app/api/shared_reads.hpp"
#include "core/utf8.hpp"
#include "postrider/relay_admin.hpp"
#include "storage/stream_store.hpp"

namespace postrider::api {
namespace {

namespace json = boost::json;
using http::Method;
using http::Response;

/// Each comes with its event, read one by one.
constexpr std::int64_t most_dead_listed = 200;

json::object lag_json(const PairStatus& pair) {
  return {{"topic", pair.name.topic},
          {"publisher", pair.name.publisher},
          {"status", to_string(pair.state)},
          {"lagEvents", pair.lag_events},
          {"lagSeconds", seconds(pair.lag_time)}};
}

template <class List, class ToJson>
Response list_response(std::string_view name, const List& list, const ToJson& to_json) {
  json::array all;
  for (const auto& one : list) all.push_back(to_json(one));
  return json_response({{name, std::move(all)}});
}

[[noreturn]] void refuse_unknown_pair() {
  refuse_missing("there is no such publisher or pair",
                 "GET /api/topics lists them; a pair is there from its first start on");
}

/// A name in the path. Bytes that no name has are asked of no database: it would fail.
std::string name_in_path(const Call& call, std::string_view parameter) {
  const std::string_view name = call.request.parameter(parameter);
  if (!utf8_length(name) || name.find('\0') != std::string_view::npos) refuse_unknown_pair();
  return std::string(name);
}

std::string publisher_of(const Call& call) {
  return name_in_path(call, "publisher");
}

PairSelector pair_of(const Call& call) {
  return PairSelector::pair(name_in_path(call, "topic"), publisher_of(call));
}

std::vector<PairStatus> some_pairs(const Call& call, const PairSelector& which) {
  std::vector<PairStatus> pairs = RelayAdmin(call.storage).list(which);
  if (pairs.empty()) refuse_unknown_pair();
  return pairs;
}

/// How a publisher's pairs stand together: the worst of them.
json::object publisher_json(const std::string& name, const std::vector<PairStatus>& pairs) {
  PairState worst = PairState::active;
  std::int64_t lag = 0;
  json::array list;
  for (const PairStatus& pair : pairs) {
    worst = std::max(worst, pair.state);
    lag = std::max(lag, pair.lag_events);
    list.push_back(pair_json(pair));
  }
  return {{"name", name}, {"status", to_string(worst)}, {"lagEvents", lag}, {"pairs", std::move(list)}};
}

Response publishers(Call& call) {
  std::map<std::string, std::vector<PairStatus>> by_name;
  for (PairStatus& pair : RelayAdmin(call.storage).list()) {
    const std::string name = pair.name.publisher;
    by_name[name].push_back(std::move(pair));
  }
  return list_response("publishers", by_name,
                       [](const auto& one) { return publisher_json(one.first, one.second); });
}

/// What makes two questions the same: none of these has a query, or asks who asks.
std::string path_of(const http::Request& request) {
  std::string path;
  for (const std::string& segment : request.path) path.append(segment).append(1, '\0');
  return path;
}

Response leaders(Call& call) {
  return list_response("leaders", RelayAdmin(call.storage).leaders(), leader_json);
}

Response backoff(Call& call, Relay* relay) {
  const std::vector<PairStatus> pairs = RelayAdmin(call.storage).list();
  return list_response("pairs", pairs, [&](const PairStatus& pair) {
    const auto status =
        relay == nullptr ? std::nullopt : relay->backoff(pair.name.topic, pair.name.publisher);
    json::object one{
        {"topic", pair.name.topic}, {"publisher", pair.name.publisher}, {"ledHere", status.has_value()}};
    if (status) {
      one["emptyPolls"] = status->empty_polls;
      one["delaySeconds"] = seconds(status->delay);
      one["backingOff"] = status->backing_off;
      one["retrying"] = status->retrying;
      one["until"] = time_or_null(status->until);
    }
    return one;
  });
}

using PairVerb = std::size_t (RelayAdmin::*)(const PairSelector&);

/// A change of some pairs, and how they stand afterwards.
Response change(Call& call, const PairSelector& which, std::string_view verb,
                const std::function<void()>& run) {
  (void)some_pairs(call, which);  // 404 instead of what the library says
  run();
  call.done = std::string(verb) + " " + which.topic.value_or("*") + "/" + which.publisher.value_or("*");
  return list_response("pairs", some_pairs(call, which), pair_json);
}

Response rewind(Call& call) {
  constexpr std::array<std::string_view, 1> members{"position"};
  const json::object body = json_body(call.request, members);
  const json::value* const position = body.if_contains("position");
  const std::int64_t* const number = position == nullptr ? nullptr : position->if_int64();
  if (number == nullptr || *number < 0) {
    refuse_invalid("position must be a whole number, 0 or more",
                   R"(send {"position": 42}: what is behind it is published next)");
  }
  return change(call, pair_of(call), "move to " + std::to_string(*number),
                [&] { RelayAdmin(call.storage).move_to(pair_of(call), Position{*number}); });
}

Response forget(Call& call) {
  const PairSelector which = pair_of(call);
  (void)some_pairs(call, which);
  const std::size_t pairs = RelayAdmin(call.storage).forget(which);
  call.done = "forget " + *which.topic + "/" + *which.publisher;
  return json_response({{"forgotten", pairs}});
}

/// What nobody has run since its row was removed may have letters all the same.
Response dead_letters(Call& call) {
  constexpr std::array<std::string_view, 2> known{"limit", "cursor"};
  only_parameters(call.request, known);
  const auto limit = static_cast<std::size_t>(query_number(call.request, "limit", 50, 1, most_dead_listed));
  Position after{0};
  if (const auto place = read_cursor(call.request, 1)) after = Position{cursor_number(place->at(0))};
  const std::vector<DeadLetter> letters =
      RelayAdmin(call.storage).dead_letters(pair_of(call), limit + 1, after);
  if (letters.empty()) (void)some_pairs(call, pair_of(call));
  const auto shown = std::span(letters).first(std::min(limit, letters.size()));
  const LetterEvents found = events_of(call.storage, shown, page_bytes);
  json::array all;
  for (const DeadLetter& letter : shown) {
    if (letter.position > found.until) break;
    all.push_back(dead_letter_json(letter, found.of(letter)));
  }
  json::value next = nullptr;
  if (all.size() < letters.size()) {
    const std::array<std::string, 1> place{
        std::to_string(static_cast<std::int64_t>(letters[all.size() - 1].position))};
    next = json::value(make_cursor(call.request, place));
  }
  return json_response({{"deadLetters", std::move(all)}, {"nextCursor", std::move(next)}});
}

Response discard(Call& call) {
  only_parameters(call.request, {});
  constexpr std::array<std::string_view, 2> known{"filter", "dryRun"};
  constexpr std::array<std::string_view, 1> of_filter{"untilPosition"};
  const json::object object = json_body(call.request, known);
  const Members body(object, known);
  const json::object* const filter = body.object("filter");
  if (filter == nullptr) {
    refuse_invalid("filter is missing",
                   R"(say which: {"filter": {"untilPosition": 42}}, or {"filter": {}} for all)");
  }
  const Members members(*filter, of_filter, "filter.");
  std::optional<Position> until;
  if (const auto number = members.number("untilPosition", 0, std::numeric_limits<std::int64_t>::max())) {
    until = Position{*number};
  }
  const PairSelector which = pair_of(call);
  RelayAdmin admin(call.storage);
  std::size_t events = admin.count_dead_letters(which, until);
  if (events == 0) (void)some_pairs(call, which);
  const bool dry_run = body.flag("dryRun").value_or(false);
  if (!dry_run && events > 0) {
    const std::string rest = " dead letters of " + *which.topic + "/" + *which.publisher +
                             (until ? " up to " + std::to_string(static_cast<std::int64_t>(*until)) : "");
    call.tried = "discard" + rest;
    events = admin.discard_dead_letters(which, until);
    if (events > 0) call.done = "discard " + std::to_string(events) + rest;
  }
  return json_response({{"dryRun", dry_run}, {"events", events}});
}

}  // namespace

json::object pair_json(const PairStatus& pair) {
  return {{"topic", pair.name.topic},
          {"publisher", pair.name.publisher},
          {"status", to_string(pair.state)},
          {"lastPosition", static_cast<std::int64_t>(pair.position)},
          {"head", static_cast<std::int64_t>(pair.head)},
          {"lagEvents", pair.lag_events},
          {"lagSeconds", seconds(pair.lag_time)},
          {"errorCount", pair.error_count},
          {"lastError", text_or_null(pair.last_error)},
          {"deadLetters", pair.dead_letters},
          {"leader", text_or_null(pair.leader)},
          {"leaderSince", time_or_null(pair.leader_since)},
          {"leaderHeartbeat", time_or_null(pair.leader_heartbeat)},
          {"epoch", static_cast<std::int64_t>(pair.epoch)},
          {"lastPublishedAt", time_or_null(pair.last_published_at)},
          {"createdAt", time_text(pair.created_at)},
          {"updatedAt", time_text(pair.updated_at)}};
}

json::object standby_json(const StandbyStatus& standby) {
  return {{"node", standby.node},
          {"since", time_text(standby.since)},
          {"heartbeat", time_text(standby.heartbeat)}};
}

json::object leader_json(const LeaderStatus& leader) {
  return {{"lease", leader.lease},
          {"node", leader.node},
          {"epoch", static_cast<std::int64_t>(leader.epoch)},
          {"since", time_text(leader.since)},
          {"heartbeat", time_text(leader.heartbeat)},
          {"alive", leader.alive},
          {"pairs", leader.pairs}};
}

json::object dead_letter_json(const DeadLetter& letter, const std::optional<StoredEvent>& event) {
  return {{"topic", letter.pair.topic},
          {"publisher", letter.pair.publisher},
          {"position", static_cast<std::int64_t>(letter.position)},
          {"error", shown(letter.error)},
          {"failedAt", time_text(letter.failed_at)},
          {"event", event ? json::value(stored_json(*event)) : json::value(nullptr)}};
}

std::optional<StoredEvent> LetterEvents::of(const DeadLetter& letter) const {
  const auto found = events.find(letter.position);
  if (found == events.end()) return std::nullopt;
  return found->second;
}

LetterEvents events_of(Storage& storage, std::span<const DeadLetter> letters, std::size_t max_bytes) {
  std::vector<Position> positions;
  positions.reserve(letters.size());
  for (const DeadLetter& letter : letters) positions.push_back(letter.position);
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  LetterEvents found;
  if (positions.empty()) return found;
  ReadPage page = storage.stream_store().read_at(positions, max_bytes);
  found.until = page.more ? page.seen : positions.back();
  for (StoredEvent& event : page.events) {
    const Position position = event.position();
    found.events.emplace(position, std::move(event));
  }
  return found;
}

std::vector<ApiRoute> relay_routes(const std::function<Relay*()>& relay) {
  constexpr std::size_t small_body = 4096;
  const std::string of_publisher = "/api/outbox/publishers";
  const std::string of_pair = "/api/topics/{topic}/publishers/{publisher}";
  const auto pair = [](Call& call) {
    return json_response(pair_json(some_pairs(call, pair_of(call)).front()));
  };
  std::vector<ApiRoute> routes{
      {.pattern = of_publisher, .handler = publishers},
      {.pattern = of_publisher + "/lag",
       .handler =
           [](Call& call) { return list_response("pairs", RelayAdmin(call.storage).list(), lag_json); }},
      {.pattern = of_publisher + "/leaders", .handler = leaders},
      {.pattern = of_publisher + "/backoff",
       .handler = [relay](Call& call) { return backoff(call, relay()); }},
      {.pattern = of_publisher + "/{publisher}",
       .handler =
           [](Call& call) {
             const std::string name = publisher_of(call);
             return json_response(publisher_json(name, some_pairs(call, PairSelector::of_publisher(name))));
           }},
      {.pattern = "/api/topics",
       .handler =
           [](Call& call) { return list_response("pairs", RelayAdmin(call.storage).list(), pair_json); }},
      {.pattern = of_pair, .handler = pair},
      {.pattern = of_pair + "/status", .handler = pair},
      {.pattern = of_pair + "/lag",
       .handler =
           [](Call& call) { return json_response(lag_json(some_pairs(call, pair_of(call)).front())); }},
      {.method = Method::post,
       .pattern = of_pair + "/rewind",
       .role = Role::admin,
       .body_limit = small_body,
       .handler = rewind},
      {.method = Method::post, .pattern = of_pair + "/forget", .role = Role::admin, .handler = forget},
  };
  for (const auto& [name, verb] : std::array<std::pair<const char*, PairVerb>, 3>{
           {{"pause", &RelayAdmin::pause}, {"resume", &RelayAdmin::resume}, {"reset", &RelayAdmin::reset}}}) {
    const auto add = [&, name = name, verb = verb](const std::string& pattern, auto select) {
      routes.push_back({.method = Method::post,
                        .pattern = pattern + "/" + name,
                        .role = Role::operator_,
                        .handler = [name, verb, select](Call& call) {
                          const PairSelector which = select(call);
                          return change(call, which, name, [&] { (RelayAdmin(call.storage).*verb)(which); });
                        }});
    };
    add(of_publisher + "/{publisher}",
        [](const Call& call) { return PairSelector::of_publisher(publisher_of(call)); });
    add(of_pair, [](const Call& call) { return pair_of(call); });
  }
  // Each dashboard and each monitor asks for these all the time.
  const auto reads = std::make_shared<SharedReads>();
  for (ApiRoute& route : routes) {
    const bool shared = route.method == Method::get;
    route.handler = [handler = std::move(route.handler), reads, shared](Call& call) {
      only_parameters(call.request, {});  // none of them takes any
      return shared ? reads->get(path_of(call.request), [&] { return handler(call); }) : handler(call);
    };
  }
  routes.push_back({.pattern = of_pair + "/dead", .handler = dead_letters});
  routes.push_back({.method = Method::post,
                    .pattern = of_pair + "/dead/discard",
                    .role = Role::admin,
                    .body_limit = small_body,
                    .handler = discard});
  return routes;
}

}  // namespace postrider::api
