// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sinks/receiver.hpp"
#include "sinks/redis/redis_server.hpp"

namespace postrider::test {

/// All entries of a stream, in its order.
[[nodiscard]] std::vector<Received> entries_of(RedisServer& server, const std::string& stream);

}  // namespace postrider::test
