// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/cli/finding.hpp"
#include "app/cli/inspector.hpp"

namespace postrider::cli {

/// One invariant, as far as a database that is in use can show it. Reads only.
struct Check {
  std::string name{};       ///< "outbox.finished"
  std::string invariant{};  ///< of the design: "H"
  std::string holds{};      ///< what is true when it holds
  std::string mend{};
  /// How many rows violate it, and which: an empty text when it holds.
  std::function<std::string(Inspector&)> violation{};
  bool note_only = false;  ///< worth knowing, and no violation
};

/// Those of the tables, each one statement.
[[nodiscard]] std::vector<Check> table_checks(Inspector& inspector);
/// Those that need more than SQL: what events are found by, what cannot be read.
[[nodiscard]] std::vector<Check> content_checks(const Database& database, std::size_t sample);

/// Epochs, heads and the like: they only ever grow. Read at the beginning, compared at the end.
using Growing = std::map<std::string, std::int64_t>;
[[nodiscard]] Growing read_growing(Inspector& inspector);
[[nodiscard]] Check grows(Growing before);

}  // namespace postrider::cli
