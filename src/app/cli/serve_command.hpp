// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace postrider::cli {

struct ServeOptions {
  std::string config{};
};

/// Runs what the configuration switches on until SIGTERM or SIGINT, then drains. SIGHUP reads the
/// configuration again. Returns the exit code. Called before the process has other threads.
int run_serve(const ServeOptions& options);

}  // namespace postrider::cli
