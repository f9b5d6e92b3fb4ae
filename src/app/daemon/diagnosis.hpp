// SPDX-License-Identifier: Apache-2.0
// Why is it stuck? What an operator would look for, in the order in which he would.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/daemon/figures.hpp"
#include "app/daemon/sink_health.hpp"

namespace postrider::daemon {

enum class Cause : std::uint8_t {
  database_away,
  database_refuses,  ///< it answers, but takes no writes
  blocking_transaction,
  no_leader,
  dead_node,
  store_set_back,  ///< a pair stands where the event store does not reach
  failed_pair,
  unhealthy_sink,  ///< it was away when it was last tried, its circuit is open, or it says so itself
  failing_pair,    ///< tries again and again
  paused_pair,
  unled_pair,  ///< somebody leads, but not this one
  still_pair,  ///< led, and publishes nothing
  outbox_waits,
  queue_waits,
};
/// "database-away"
[[nodiscard]] std::string_view to_string(Cause cause) noexcept;

struct Finding {
  Cause cause{};
  std::string text{};  ///< one line that names the pair, the node, the process
  std::string hint{};  ///< what to do about it
};

/// The node that looks. Who sees the database alone knows none of this.
struct Observer {
  std::vector<SinkHealth> sinks{};  ///< its own; of those of other nodes their pairs tell
  std::string phase{};              ///< what it waits for before its first look at the database
  bool runs_outbox = false;         ///< so what waits there is tried again
};

/// All that keeps events from moving, the worst first; empty when nothing does. `figures` is null before the
/// first look at the database.
[[nodiscard]] std::vector<Finding> diagnose(const Figures* figures, const Observer& observer);

/// The worst of them in a line, and how many more there are.
[[nodiscard]] std::string stuck_line(const std::vector<Finding>& findings);

}  // namespace postrider::daemon
