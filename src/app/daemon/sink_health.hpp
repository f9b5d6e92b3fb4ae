// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace postrider::daemon {

/// How a receiver of this node stands.
struct SinkHealth {
  std::string name{};
  bool healthy = true;  ///< false: its circuit is open, or it says so itself
  std::string type{};   ///< "kafka"
  /// Why it did not take what it was last given, with its address; empty when it did. It may be healthy all
  /// the same: between two attempts nobody knows.
  std::string trouble{};
};

}  // namespace postrider::daemon
