// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace postrider {

/// What to do with the schema. The default brings it up to this library's version.
struct MigrateOptions {
  /// Go to this version: up or down. Empty: the newest known.
  std::optional<int> target{};
  /// Report what would be done, and the SQL, without doing it.
  bool dry_run = false;
};

struct MigrationStep {
  int version;
  std::string name;
  bool up;          ///< false: undone
  std::string sql;  ///< as it is, or would be, run
};

struct MigrationReport {
  int from = 0;  ///< version found
  int to = 0;    ///< version left behind (or that would be)
  std::vector<MigrationStep> steps;
};

}  // namespace postrider
