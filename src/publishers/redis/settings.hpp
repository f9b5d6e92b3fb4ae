// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace postrider::redis {

/// Where the server is and who we are there.
struct Settings {
  std::string host{};
  std::uint16_t port = 6379;
  std::string socket{};  ///< path of a Unix socket, instead of host and port
  int database = 0;
  std::string username{};
  std::string password{};

  /// For messages: without user and password.
  [[nodiscard]] std::string place() const;
};

/// Throws Error(invalid_argument), which does not repeat the URL, for it may hold a password.
[[nodiscard]] Settings parse_url(std::string_view url);

}  // namespace postrider::redis
