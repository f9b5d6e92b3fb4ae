// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/cli/admin_options.hpp"
#include "app/cli/change.hpp"
#include "postrider/clock.hpp"

namespace postrider::cli {

struct EventlogOptions {
  std::string listen = "127.0.0.1:3000";
  std::string storage;
  std::string schema = "postrider";
  std::size_t max_connections = 1024;
  std::size_t max_batch = 1000;
  std::size_t request_seconds = 10;
  std::size_t drain_seconds = 30;
  bool no_wait = false;  ///< a database that is away at the start is an error
  bool relaxed_sync = false;
  std::string retention;  ///< "90d"; empty: nothing is removed
};

struct EventlogPurgeOptions : AdminOptions {
  std::string older_than{};  ///< "90d"
  bool dry_run = false;
};

/// Serves the Event Log API until SIGTERM or SIGINT, then drains. Returns the exit code. Called before the
/// process has other threads, because all of them must leave the signals to this one.
int run_eventlog(const EventlogOptions& options);

/// Removes old entries in batches, and says how far it is. Returns the exit code.
int run_purge(const EventlogPurgeOptions& options, Change& change);

}  // namespace postrider::cli
