// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/failure_log.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/event_type.hpp"
#include "postrider/listener.hpp"

namespace postrider {

using Listeners = std::vector<std::shared_ptr<const Listener>>;

/// Which listeners an event runs: those of its exact type in order of registration, then those for all.
/// Thread-safe. Each list handed out is an immutable snapshot: later registrations don't change it.
class ListenerRegistry {
 public:
  /// With a log, failures of the listeners and types that nobody listens to are told to it.
  explicit ListenerRegistry(std::shared_ptr<FailureLog> failures = nullptr);

  void add(const EventType& type, Listener listener);
  void add_for_all(Listener listener);

  /// Never null; empty when nobody listens.
  [[nodiscard]] std::shared_ptr<const Listeners> listeners_for(std::string_view type) const;

 private:
  /// Lists are joined at registration, which is rare, so that looking one up, which is not, only finds it.
  struct Entry {
    Listeners exact;
    std::shared_ptr<const Listeners> joined;
  };
  void join(Entry& entry) const POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] std::shared_ptr<const Listener> watched(Listener listener);

  const std::shared_ptr<FailureLog> failures_;
  std::atomic<std::size_t> watched_count_ = 0;
  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> by_type_ POSTRIDER_GUARDED_BY(mutex_);
  std::shared_ptr<const Listeners> for_all_ POSTRIDER_GUARDED_BY(mutex_) =
      std::make_shared<const Listeners>();
};

}  // namespace postrider
