// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace postrider::http {

struct ListenAddress {
  std::string host;  ///< an IP address
  std::uint16_t port = 0;
};

/// "127.0.0.1:3000", "[::1]:3000". Throws Error(invalid_argument) for what is no address, and, unless
/// `guarded` says that there are TLS and tokens, Error(unsupported) for one that others than this machine can
/// reach.
[[nodiscard]] ListenAddress parse_listen(std::string_view text, bool guarded = false);

/// One that this machine can open: an address that stands for all of the machine's is told as loopback.
[[nodiscard]] std::string url_of(const ListenAddress& address, std::uint16_t port, bool tls = false);

}  // namespace postrider::http
