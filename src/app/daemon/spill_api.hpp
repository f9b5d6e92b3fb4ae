// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "app/api/routes.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::daemon {

/// What loggers on this machine have put aside in their folders. Looks when somebody asks, and not again for
/// a while: for two seconds, and for twenty times as long as looking took. Thread-safe.
class SpillBoard {
 public:
  SpillBoard(std::vector<std::string> folders, Clock& clock) : folders_(std::move(folders)), clock_(clock) {}

  /// {"at": …, "folders": […]}: a `spill_report` of each with `error`, which is null unless it could not be
  /// looked into. Who asks while another looks waits for what that one finds.
  [[nodiscard]] boost::json::object reports() POSTRIDER_EXCLUDES(mutex_);

 private:
  [[nodiscard]] boost::json::array look() const;

  const std::vector<std::string> folders_;
  Clock& clock_;
  Mutex mutex_;
  boost::json::object latest_ POSTRIDER_GUARDED_BY(mutex_);  ///< empty before the first look
  SteadyPoint good_until_ POSTRIDER_GUARDED_BY(mutex_){};
};

/// GET /api/spill. `board` lives as long as the routes.
[[nodiscard]] std::vector<api::ApiRoute> spill_routes(SpillBoard& board);

}  // namespace postrider::daemon
