// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/config/daemon_config.hpp"

namespace postrider::cli {

/// The exit code when the process had to end without having stored, or not stored, all that it was asked to.
inline constexpr int exit_gave_up = 3;

struct RunOptions {
  std::string what = "on";  ///< of the first line: "postrider: <what> http://..."
  std::string greeting{};   ///< printed before it, as soon as somebody can connect
  /// Reads the configuration again, for SIGHUP; without it there is nothing to read.
  std::function<config::ReadConfig()> read_again{};
  std::vector<config::Effective> effective{};  ///< as it was read at first
};

/// Runs what the configuration switches on until SIGTERM or SIGINT, then drains. Returns the exit code.
/// Throws what keeps it from starting for good. Called before the process has other threads, because all of
/// them must leave the signals to this one.
int run_daemon(const config::DaemonConfig& config, const RunOptions& options);

}  // namespace postrider::cli
