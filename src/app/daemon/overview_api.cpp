// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/overview_api.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "app/api/counts_json.hpp"
#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"
#include "app/api/relay_api.hpp"
#include "app/http/problems.hpp"
#include "postrider/projection.hpp"

namespace postrider::daemon {
namespace {

namespace json = boost::json;
using api::seconds;
using api::time_text;
using http::Request;
using http::Response;

/// Of all pairs together: there may be ten thousand.
json::object pairs_json(const std::vector<PairStatus>& pairs) {
  std::int64_t states[3] = {};
  std::int64_t lag = 0;
  std::int64_t dead = 0;
  Duration lag_time{};
  for (const PairStatus& pair : pairs) {
    ++states[static_cast<std::size_t>(pair.state)];
    lag = std::max(lag, pair.lag_events);
    lag_time = std::max(lag_time, pair.lag_time);
    dead += pair.dead_letters;
  }
  return {{"active", states[0]},
          {"paused", states[1]},
          {"failed", states[2]},
          {"maxLagEvents", lag},
          {"maxLagSeconds", seconds(lag_time)},
          {"deadLetters", dead}};
}

json::object figures_json(const Figures& figures) {
  json::array leaders;
  for (const LeaderStatus& leader : figures.leaders) leaders.push_back(api::leader_json(leader));
  return {{"at", time_text(figures.at)},
          {"outbox", api::counts_json(figures.outbox)},
          {"queue", api::counts_json(figures.queue)},
          {"store", json::object{{"head", static_cast<std::int64_t>(figures.head)}}},
          {"pairs", pairs_json(figures.pairs)},
          {"leaders", std::move(leaders)}};
}

Response nodes(api::Call& call, const std::function<json::object()>& overview) {
  api::only_parameters(call.request, {});
  const RelayAdmin admin(call.storage);
  json::array leases;
  for (const LeaderStatus& leader : admin.leaders()) leases.push_back(api::leader_json(leader));
  json::array standbys;
  for (const StandbyStatus& standby : admin.standbys()) standbys.push_back(api::standby_json(standby));
  const json::object own = overview();
  return api::json_response(
      {{"thisNode", own.at("node")}, {"leases", std::move(leases)}, {"standbys", std::move(standbys)}});
}

}  // namespace

json::object sink_json(const SinkHealth& sink) {
  return {{"name", sink.name},
          {"type", sink.type},
          {"healthy", sink.up()},
          {"lastError", sink.trouble.empty() ? json::value(nullptr) : api::shown(sink.trouble)}};
}

json::array findings_json(const std::vector<Finding>& findings) {
  json::array list;
  for (const Finding& finding : findings) {
    list.push_back({{"cause", to_string(finding.cause)},
                    {"text", api::shown(finding.text)},
                    {"hint", api::shown(finding.hint)}});
  }
  return list;
}

json::object overview_json(const OverviewInput& input) {
  const std::vector<Finding> findings = diagnose(input.figures, input.observer);
  json::array sinks;
  for (const SinkHealth& sink : input.observer.sinks) sinks.push_back(sink_json(sink));
  const bool up = input.figures != nullptr && input.figures->database_up;
  return {{"node", json::object{{"name", api::text_or_null(input.node)},
                                {"phase", input.observer.phase},
                                {"uptimeSeconds", seconds(input.uptime)},
                                {"ledPairs", input.led_pairs}}},
          {"database", json::object{{"up", up},
                                    {"name", input.storage},
                                    {"connections", json::object{{"open", input.pool.open},
                                                                 {"limit", input.pool.limit},
                                                                 {"inUse", input.pool.in_use},
                                                                 {"waiting", input.pool.waiting}}}}},
          {"stuck", api::shown(stuck_line(findings))},
          {"findings", findings_json(findings)},
          {"sinks", std::move(sinks)},
          {"figures", up ? json::value(figures_json(*input.figures)) : json::value(nullptr)}};
}

std::vector<api::ApiRoute> overview_routes(const std::function<json::object()>& overview, LiveFeed& live,
                                           const api::Access& access) {
  return {
      {.pattern = "/api/overview",
       .without_database =
           [overview](const Request& request, const api::Caller&) {
             api::only_parameters(request, {});
             return api::json_response(overview());
           }},
      {.pattern = "/api/live",
       .without_database =
           [&live, &access](const Request& request, const api::Caller& caller) {
             api::only_parameters(request, {});
             std::shared_ptr<http::BodyStream> body =
                 live.join([&access, caller] { return access.still_good(caller, api::Role::viewer); });
             if (body == nullptr) return to_response(http::busy("too many listen already"));
             return Response{.content_type = "text/event-stream",
                             .headers = {{"Cache-Control", "no-store"}},
                             .stream = std::move(body)};
           }},
      {.pattern = "/api/nodes", .handler = [overview](api::Call& call) { return nodes(call, overview); }},
  };
}

}  // namespace postrider::daemon
