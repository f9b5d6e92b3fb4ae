// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/publisher.hpp"
#include "postrider/relay_admin.hpp"

namespace postrider {

/// A lease as its holder knows it.
struct LeaseFence {
  std::string name{};
  std::string owner{};
  Epoch epoch{};
};

struct LeaseRow {
  std::string name{};
  std::string owner{};  ///< empty: given back
  Epoch epoch{};
  TimePoint since{};
  TimePoint heartbeat{};
  bool held = false;    ///< its time is not over
  bool waits = false;   ///< announced, and not for longer than was said: it leads nothing
  bool locked = false;  ///< its owner holds a lock of its name while it lives, see NodeLocks
};

/// The table outbox_lease, as verbs. Thread-safe. Time is the database's.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  /// Takes the lease when it is free: not there, given back, over, or held by one of `dead`. Raises its
  /// epoch. Its holder does not get it a second time.
  [[nodiscard]] virtual std::optional<Epoch> acquire(std::string_view name, std::string_view owner,
                                                     Duration lease, bool locked,
                                                     std::span<const std::string> dead) = 0;
  /// From now on for `lease`. False when somebody else has taken it; also one that is over can be renewed if
  /// nobody has.
  [[nodiscard]] virtual bool renew(const LeaseFence& fence, Duration lease, bool locked) = 0;
  /// False when it was not held any more.
  virtual bool release(const LeaseFence& fence) = 0;
  /// Says for `lease` that somebody of this name lives, who holds nothing: a row without an owner, which
  /// nobody can take a pair by.
  virtual void announce(std::string_view name, Duration lease) = 0;
  /// Takes back what was announced; nothing when that was not.
  virtual void withdraw(std::string_view name) = 0;
  [[nodiscard]] virtual std::vector<LeaseRow> list() = 0;
  /// Removes what is called `prefix…` and has been over for so long. Returns how many.
  virtual std::size_t forget(std::string_view prefix, Duration over_for) = 0;
};

/// Locks that a database holds for a session, and lets go in the moment the session's process is dead. They
/// say who is dead before its lease is over; who may write is said by the lease alone. Thread-safe.
class NodeLocks {
 public:
  virtual ~NodeLocks() = default;

  /// Let go when destroyed.
  class Held {
   public:
    virtual ~Held() = default;
    /// False when the connection is lost, and the lock with it. Used by one thread.
    [[nodiscard]] virtual bool still_held() noexcept = 0;
  };
  /// On a connection of its own. Null when it is taken, or when a pooler makes such locks useless.
  [[nodiscard]] virtual std::unique_ptr<Held> hold(std::string_view node) = 0;
  /// Which of these nobody holds.
  [[nodiscard]] virtual std::vector<std::string> free(std::span<const std::string> nodes) = 0;
};

}  // namespace postrider
