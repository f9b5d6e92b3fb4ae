// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace postrider::nats {

/// What a URL says: where the servers are and who we are there.
struct Settings {
  std::vector<std::string> servers{};  ///< without secrets: "nats://host:4222"
  bool tls = false;
  std::string username{};
  std::string password{};
  std::string token{};

  /// For messages.
  [[nodiscard]] std::string place() const;
};

/// Throws Error(invalid_argument), which does not repeat the URL, for it may hold a password.
[[nodiscard]] Settings parse_url(std::string_view url);

}  // namespace postrider::nats
