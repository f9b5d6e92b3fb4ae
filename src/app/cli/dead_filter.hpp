// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "app/cli/admin_options.hpp"
#include "postrider/outbox_admin.hpp"

namespace postrider::cli {

/// Which dead letters a command is about.
struct DeadOptions : AdminOptions {
  std::vector<std::string> ids{};
  std::string type{};
  std::string aggregate{};
  std::string tenant{};
  std::string error{};
  std::string after{};
  std::string before{};
  std::size_t limit = 100;
  bool all = false;
  bool dry_run = false;
  bool yes = false;
  std::int64_t rate = 0;
};

void add_dead_filter(CLI::App& command, DeadOptions& options);
[[nodiscard]] DeadLetterFilter filter_of(const DeadOptions& options);
/// Throws Error(invalid_argument) when nothing says which are meant, and nothing that all are.
void require_choice(const DeadOptions& options);

/// postrider dead replay
int replay_dead(const DeadOptions& options, Change& change);

}  // namespace postrider::cli
