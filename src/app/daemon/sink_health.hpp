// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "postrider/sink.hpp"

namespace postrider::daemon {

/// How a receiver of this node stands.
struct SinkHealth {
  std::string name{};
  bool healthy = true;  ///< false: its circuit is open, or it says so itself
  std::string type{};   ///< "kafka"
  /// Why it did not take what it was last given, with its address; empty when it did. It may be healthy all
  /// the same: between two attempts nobody knows.
  std::string trouble{};
  SinkCounts counts{};

  /// As far as this node knows it takes events. Who has something for a sink tries it more often than this:
  /// what is older is history, of a node that no longer sends to it because another one leads.
  static constexpr Duration history = std::chrono::minutes{10};
  [[nodiscard]] bool up() const noexcept {
    return healthy && (trouble.empty() || counts.since_failure > history);
  }
};

}  // namespace postrider::daemon
