// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <string>

namespace postrider {

/// Whether it is an address of the public internet: not loopback, private, link-local, multicast, reserved,
/// or a cloud's metadata service; nor an IPv6 address that leads to an IPv4 one that is.
[[nodiscard]] bool public_address(const sockaddr& address);

/// Whether `host` is a literal address ("10.0.0.1", "127.1", "::1") that is not one of those. Of a name
/// nothing is known before it is looked up, which is not done here.
[[nodiscard]] bool literal_but_not_public(const std::string& host);

/// "127.0.0.1" or "::1".
[[nodiscard]] std::string address_text(const sockaddr& address);

}  // namespace postrider
