// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/inspector.hpp"
#include "postrider/outbox_admin.hpp"

namespace postrider::cli {

/// Events of the outbox by their ids, of which ULIDs begin with their time. A transaction may commit a while
/// after its events were made, so each look begins a minute back. Ids of other kinds are not seen.
class OutboxTail {
 public:
  struct Options {
    std::size_t lines = 10;  ///< so many of those that are there
    bool follow = false;     ///< `look` will be called
  };
  /// False: whoever reads has left.
  using Show = std::function<bool(const OutboxRecord&)>;

  /// Shows the newest. `database` must outlive it.
  OutboxTail(const Database& database, const Options& options, Show show);

  /// Shows what came since, each event once: none between the first ones and these is left out. True when
  /// there was any.
  bool look();

 private:
  /// The rows that `rest`, which stands behind FROM, chooses; without payloads and headers.
  [[nodiscard]] std::vector<OutboxRecord> rows(const std::string& rest, std::span<const Value> params);
  /// The newest of those below the id, the newest first.
  [[nodiscard]] std::vector<OutboxRecord> newest(std::string_view below, std::size_t count);
  /// Calls `use` for each event of the last minute that it was not called for before, as long as that says
  /// true.
  void each_recent(const std::string& begin, const Show& use);
  /// All that is there now counts as known, and the last `lines` of it are shown.
  void show_and_know(std::size_t lines);

  Inspector inspector_;
  const Show show_;
  std::set<EventId> seen_;
};

}  // namespace postrider::cli
