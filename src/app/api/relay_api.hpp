// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "app/api/routes.hpp"
#include "postrider/relay.hpp"
#include "postrider/relay_admin.hpp"

namespace postrider::api {

// As the API, the command line and the dashboard show them.
[[nodiscard]] boost::json::object pair_json(const PairStatus& pair);
[[nodiscard]] boost::json::object leader_json(const LeaderStatus& leader);
[[nodiscard]] boost::json::object standby_json(const StandbyStatus& standby);
/// `event` as `stored_json` has it; null when the store does not have it any more.
[[nodiscard]] boost::json::object dead_letter_json(const DeadLetter& letter,
                                                   const std::optional<StoredEvent>& event);

/// Events that publishers did not take: they stay in the store.
struct LetterEvents {
  std::map<Position, StoredEvent> events{};
  Position until{};  ///< of the letters up to here

  /// Nothing when it was removed.
  [[nodiscard]] std::optional<StoredEvent> of(const DeadLetter& letter) const;
};
/// Of these letters (at most 10,000, in whatever order) in one read, which ends behind the event that reaches
/// `max_bytes`.
[[nodiscard]] LetterEvents events_of(Storage& storage, std::span<const DeadLetter> letters,
                                     std::size_t max_bytes);

/// Publishers, topics and their pairs. `relay` is this node's, null while there is none.
[[nodiscard]] std::vector<ApiRoute> relay_routes(const std::function<Relay*()>& relay);

}  // namespace postrider::api
