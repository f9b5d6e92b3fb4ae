// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <vector>

#include "app/api/routes.hpp"
#include "app/daemon/live_feed.hpp"
#include "app/daemon/spill_api.hpp"
#include "postrider/event_store.hpp"
#include "postrider/outbox.hpp"
#include "postrider/relay.hpp"

namespace postrider::daemon {

/// What the management API needs of the program. All live as long as the routes; functions may be called from
/// any thread.
struct ManagementParts {
  std::function<Relay*()> relay{};    ///< may return null
  std::function<Outbox*()> outbox{};  ///< may return null
  EventStore* store = nullptr;
  Duration stuck_after{};
  std::function<boost::json::object()> overview{};
  LiveFeed* live = nullptr;
  const api::Access* access = nullptr;
  SpillBoard* spill = nullptr;
};

/// Every route of the management API.
[[nodiscard]] std::vector<api::ApiRoute> management_routes(const ManagementParts& parts);

}  // namespace postrider::daemon
