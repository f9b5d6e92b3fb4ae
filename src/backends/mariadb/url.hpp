// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace postrider::mariadb {

enum class SslMode { off, required, verify };

/// Where to connect, and how.
struct ConnectSettings {
  std::string host = "127.0.0.1";
  unsigned port = 3306;
  std::string socket{};  ///< when set, host and port are not used
  std::string user{};
  std::string password{};
  std::string database{};
  SslMode ssl = SslMode::off;
  std::string ssl_ca{};
  std::chrono::seconds connect_timeout{5};
  /// How long the server may be silent while an answer is due, or take nothing of what is sent; zero: for
  /// ever. Not given: as StorageOptions::io_timeout. Locks are waited for a little shorter, so that the
  /// server speaks first.
  std::optional<std::chrono::seconds> read_timeout{};
  std::optional<std::chrono::seconds> write_timeout{};

  /// As a URL without the password, for messages.
  [[nodiscard]] std::string name() const;
};

/// Reads
/// `mariadb://user:password@host:port/database?socket=…&ssl_mode=…&ssl_ca=…&read_timeout=…&write_timeout=…`.
/// Everything but the database may be left out. Throws Error(invalid_argument); its message never holds the
/// password.
[[nodiscard]] ConnectSettings parse_url(std::string_view url);

}  // namespace postrider::mariadb
