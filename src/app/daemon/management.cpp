// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/management.hpp"

#include <iterator>
#include <utility>

#include "app/api/audit_api.hpp"
#include "app/api/me_api.hpp"
#include "app/api/outbox_api.hpp"
#include "app/api/publish_api.hpp"
#include "app/api/queue_api.hpp"
#include "app/api/relay_api.hpp"
#include "app/api/store_api.hpp"
#include "app/daemon/overview_api.hpp"

namespace postrider::daemon {

std::vector<api::ApiRoute> management_routes(const ManagementParts& parts) {
  std::vector<api::ApiRoute> all;
  const auto add = [&](std::vector<api::ApiRoute> routes) {
    all.insert(all.end(), std::make_move_iterator(routes.begin()), std::make_move_iterator(routes.end()));
  };
  add(overview_routes(parts.overview, *parts.live, *parts.access));
  add(api::relay_routes(parts.relay));
  add(api::outbox_routes());
  add(api::publish_routes(parts.outbox));
  add(api::queue_routes(parts.stuck_after));
  add(api::store_routes(*parts.store));
  add(api::audit_routes());
  add(spill_routes(*parts.spill));
  all.push_back(api::me_route(all));
  return all;
}

}  // namespace postrider::daemon
