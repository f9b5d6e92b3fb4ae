// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "app/api/routes.hpp"
#include "app/daemon/diagnosis.hpp"
#include "app/daemon/live_feed.hpp"

namespace postrider::daemon {

/// What an overview is made of.
struct OverviewInput {
  const Figures* figures = nullptr;  ///< null before the first look
  Observer observer{};
  std::string node{};
  std::string storage{};
  PoolStats pool{};
  Duration uptime{};
  std::int64_t led_pairs = 0;
};

[[nodiscard]] boost::json::object sink_json(const SinkHealth& sink);
[[nodiscard]] boost::json::array findings_json(const std::vector<Finding>& findings);
[[nodiscard]] boost::json::object overview_json(const OverviewInput& input);

/// GET /api/overview, /api/live and /api/nodes. `overview` may be called from any thread, and asks no
/// database; `live` and `access` live as long as the routes.
[[nodiscard]] std::vector<api::ApiRoute> overview_routes(const std::function<boost::json::object()>& overview,
                                                         LiveFeed& live, const api::Access& access);

}  // namespace postrider::daemon
