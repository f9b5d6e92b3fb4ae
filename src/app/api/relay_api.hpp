// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "app/api/routes.hpp"
#include "postrider/relay.hpp"
#include "postrider/relay_admin.hpp"

namespace postrider::api {

// As the API, the command line and the dashboard show them.
[[nodiscard]] boost::json::object pair_json(const PairStatus& pair);
[[nodiscard]] boost::json::object leader_json(const LeaderStatus& leader);
/// `event` as `stored_json` has it; null when the store does not have it any more.
[[nodiscard]] boost::json::object dead_letter_json(const DeadLetter& letter,
                                                   const std::optional<StoredEvent>& event);

/// The event that a publisher did not take: it stays in the store.
[[nodiscard]] std::optional<StoredEvent> event_of(Storage& storage, const DeadLetter& letter);

/// Publishers, topics and their pairs. `relay` is this node's, null while there is none.
[[nodiscard]] std::vector<ApiRoute> relay_routes(const std::function<Relay*()>& relay);

}  // namespace postrider::api
