// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/spill_api.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <exception>

#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"
#include "app/daemon/spill_report.hpp"
#include "core/what_of.hpp"

namespace postrider::daemon {
namespace {

namespace json = boost::json;

constexpr SteadyPoint::duration shortest_memory = std::chrono::seconds{2};
constexpr SteadyPoint::duration longest_memory = std::chrono::minutes{1};
constexpr int look_share = 20;

/// With the members of a report, so that readers need no second shape.
json::object unreadable(const std::string& folder, const std::exception& error) {
  return {{"folder", api::shown(folder)},
          {"error", api::shown(what_of(error))},
          {"waiting", 0},
          {"inRings", 0},
          {"bytes", 0},
          {"deadLetters", 0},
          {"quarantined", 0},
          {"replayedUpTo", 0},
          {"oldest", nullptr},
          {"oldestSeconds", nullptr},
          {"files", json::array()},
          {"rings", json::array()},
          {"gaps", json::array()},
          {"missing", json::array()}};
}

}  // namespace

json::array SpillBoard::look() const {
  json::array all;
  for (const std::string& folder : folders_) {
    try {
      json::object report = spill_report(folder, clock_.now());
      report["error"] = nullptr;
      all.push_back(std::move(report));
    } catch (const std::exception& error) {
      all.push_back(unreadable(folder, error));
    }
  }
  return all;
}

json::object SpillBoard::reports() {
  const MutexLock lock(mutex_);
  const SteadyPoint begin = clock_.steady_now();
  if (!latest_.empty() && begin < good_until_) return latest_;
  latest_ = {{"at", api::time_text(clock_.now())}, {"folders", look()}};
  const SteadyPoint end = clock_.steady_now();
  good_until_ =
      end + std::clamp<SteadyPoint::duration>((end - begin) * look_share, shortest_memory, longest_memory);
  return latest_;
}

std::vector<api::ApiRoute> spill_routes(SpillBoard& board) {
  return {{.pattern = "/api/spill",
           .without_database = [&board](const http::Request& request, const api::Caller&) {
             api::only_parameters(request, {});
             return api::json_response(board.reports());
           }}};
}

}  // namespace postrider::daemon
