// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "app/cli/admin_options.hpp"
#include "app/daemon/diagnosis.hpp"
#include "postrider/outbox_admin.hpp"
#include "postrider/projection.hpp"
#include "postrider/queue_admin.hpp"
#include "postrider/relay_admin.hpp"
#include "postrider/storage.hpp"

namespace postrider::cli {

/// How everything in a database stands at a moment.
struct Snapshot {
  TimePoint at{};
  std::string storage{};
  std::string kind{};
  int schema_version = 0;
  int schema_needed = 0;
  OutboxCounts outbox{};
  QueueCounts queue{};
  Position head{};    ///< of the event store
  LogSeq log_head{};  ///< of the queue's log
  std::vector<PairStatus> pairs{};
  std::vector<LeaderStatus> leaders{};
  std::vector<StandbyStatus> standbys{};
  std::vector<ProjectionStatus> projections{};
  /// What keeps events from moving, as far as the database can tell.
  std::vector<daemon::Finding> findings{};

  [[nodiscard]] bool schema_fits() const noexcept { return schema_version == schema_needed; }
};

/// Without tables in this program's version only the versions are known. Throws what the database throws.
[[nodiscard]] Snapshot take_snapshot(const Database& database);

[[nodiscard]] boost::json::object snapshot_json(const Snapshot& snapshot);

}  // namespace postrider::cli
