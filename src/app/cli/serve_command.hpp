// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/cli/admin_options.hpp"

namespace postrider::cli {

struct ServeOptions {
  std::string config{};
};

/// Runs what the configuration switches on until SIGTERM or SIGINT, then drains. SIGHUP reads the
/// configuration again. Returns the exit code. Called before the process has other threads.
int run_serve(const ServeOptions& options);

/// The database is the one whose audit is told.
struct TokenOptions : AdminOptions {
  std::string file{};  ///< empty: that of the configuration
  std::string name{};
  std::string role = "viewer";
  std::string expires_in{};  ///< "90d"; empty: never
};
/// Makes a token, says it once, and notes its hash.
int run_token_create(const TokenOptions& options);

}  // namespace postrider::cli
