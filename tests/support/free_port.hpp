// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace postrider::test {

/// A TCP port on 127.0.0.1 on which nobody listens at the moment, below those that the kernel gives to
/// outgoing connections: a server that is killed finds it free when it comes back.
[[nodiscard]] std::uint16_t free_port();
/// Whether somebody listens there.
[[nodiscard]] bool accepts_connections(std::uint16_t port);

}  // namespace postrider::test
