// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "postrider/clock.hpp"
#include "postrider/identifier.hpp"
#include "postrider/storage.hpp"

namespace postrider::daemon {

/// A transaction that others wait for.
struct Blocker {
  std::int64_t pid = 0;
  std::string application{};  ///< as it calls itself; empty when it does not, or may not be seen
  std::string state{};        ///< "idle in transaction", "active"
  Duration open_for{};
  std::int64_t waiting = 0;  ///< how many sessions
};

/// Of those that have kept a session waiting for a second or longer, and one of the two has to do with the
/// tables in this schema, the oldest: what others do in the same database keeps no event from moving. Its
/// statement is not looked at: it may hold secrets. PostgreSQL only; nothing elsewhere.
[[nodiscard]] std::optional<Blocker> find_blocker(Storage& storage, const Identifier& schema);

}  // namespace postrider::daemon
