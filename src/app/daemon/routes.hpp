// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/config/daemon_config.hpp"
#include "app/daemon/parked_sinks.hpp"
#include "app/daemon/route_memory.hpp"
#include "postrider/listener.hpp"
#include "postrider/sink.hpp"

namespace postrider::daemon {

/// Where an event of the outbox goes: to every sink that a route leads it to. One that is away holds up
/// nobody but the event's own end: the others get it in the same attempt, and are not sent it again by this
/// process when it is tried again. Thread-safe.
class Routes {
 public:
  struct Route {
    config::RouteConfig config;
    std::shared_ptr<Sink> sink;
  };
  struct Options {
    bool unrouted_is_dead = true;
    int max_attempts = 10;  ///< the outbox's: after the last one an event is dead
    std::size_t remembered_events = 100'000;
    Clock* clock = nullptr;  ///< default: Clock::system()
  };

  Routes(const std::vector<Route>& routes, Options options);

  /// Done when all have it. While one is away the event comes back without a counted attempt, when the first
  /// of these has time for it, see Parking; else one that refuses it counts. The reason names who lacks it.
  Outcome operator()(const Event& event, const Delivery& delivery);
  /// Events that some sinks have, and others lack.
  [[nodiscard]] std::size_t remembered() const { return memory_.size(); }
  /// For whoever recalls what waits for a sink that is back.
  [[nodiscard]] ParkedSinks& parked() noexcept { return parked_; }

 private:
  struct Receiver {
    std::string name;
    std::shared_ptr<Sink> sink;
  };
  struct Entry {
    config::RouteConfig config;
    std::uint32_t receiver;
  };

  /// Two routes may lead the same event to the same place.
  [[nodiscard]] SinkNumbers receivers_of(const Event& event) const;
  Outcome send(std::uint32_t number, const Event& event);
  Outcome deliver(const Event& event, const Delivery& delivery, const SinkNumbers& receivers);

  const Options options_;
  ParkedSinks parked_;  // numbered as receivers_
  std::vector<Receiver> receivers_;
  std::vector<Entry> routes_;
  RouteMemory memory_;
};

}  // namespace postrider::daemon
