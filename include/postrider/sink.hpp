// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/event.hpp"
#include "postrider/listener.hpp"
#include "postrider/log.hpp"
#include "postrider/publisher.hpp"
#include "postrider/stored_event.hpp"

namespace postrider {

/// An event on its way out of this process. A view: valid as long as what it was made of.
struct SinkMessage {
  const Event* event = nullptr;
  const StoredEvent* stored = nullptr;  ///< of the relay; null for events of the outbox
  std::string_view topic{};             ///< of the relay
  Epoch epoch{};                        ///< of the relay
  /// Messages of the same key reach their consumers in order; empty: it has none.
  std::string_view key{};
};

/// What the guard before a sink has seen.
struct SinkCounts {
  std::uint64_t failures = 0;  ///< times that the receiver was away when something was sent to it
  Duration since_failure{};    ///< since the last of them
  bool circuit_open = false;   ///< after several of them: it is left alone until it is tried again
};

/// A receiver of events outside: a broker, a file, somebody's HTTP endpoint. One serves the relay
/// (`sink_publisher`) and the outbox (`sink_listener`) alike. Thread-safe.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Sends them in this order and returns when the first so many are safe with the receiver, which its own
  /// durable acknowledgement says. Bounded: a receiver that does not answer within the sink's timeout is
  /// `unavailable`. Never throws for what a receiver does.
  [[nodiscard]] virtual PublishResult send(std::span<const SinkMessage> messages) = 0;
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// Quick, without a look at the network. While false nothing is given to it.
  [[nodiscard]] virtual bool healthy() const { return true; }
  /// Why the receiver was away when something was last sent to it, with its address; empty when it was not.
  /// Quick.
  [[nodiscard]] virtual std::string trouble() const { return {}; }
  [[nodiscard]] virtual SinkCounts counts() const { return {}; }
  /// Sends again, though the receiver has said that it wants no events any more, or none for a while. For
  /// operators who know better; without that it changes nothing.
  virtual void revive() {}
  /// Ends what is being sent as `unavailable`, and all that comes later. Idempotent.
  virtual void close() noexcept {}
};

/// What stands before every sink.
struct SinkLimits {
  /// Messages per second; 0: no limit. Who is faster waits, up to `patience`, then is told to come back.
  std::size_t rate = 0;                         ///< up to 10,000,000
  Duration patience = std::chrono::seconds{1};  ///< 0 to 1 minute
  int breaker_threshold = 5;                    ///< failures that open the circuit; 0: never. Up to 1000
  Duration breaker_window = std::chrono::seconds{30};  ///< … within this time. 1 ms to 1 day
  Duration breaker_reset = std::chrono::seconds{5};    ///< how long it stays open. 1 ms to 1 day
  /// Messages of several callers that are sent together.
  std::size_t batch = 1000;  ///< 1 to 100,000
  Clock* clock = nullptr;    ///< default: Clock::system()
  LogCallback log = log_to_stderr();
};

/// Rate limit and circuit breaker before a sink, and messages of concurrent callers sent together. All sinks
/// of this library have it built in; put it before one of your own.
[[nodiscard]] std::shared_ptr<Sink> guarded_sink(std::shared_ptr<Sink> behind, SinkLimits limits = {});

struct SinkPublisherOptions {
  std::string name{};  ///< in the database; default: the sink's
  /// The value of this tag is the message's key. Default: the event's ordering key, else its aggregate's id.
  std::string key_tag{};
};

/// For `Relay::add`.
[[nodiscard]] std::shared_ptr<Publisher> sink_publisher(std::shared_ptr<Sink> sink,
                                                        SinkPublisherOptions options = {});

/// Sends one event of the outbox, with its ordering key, or else its aggregate's id, as the message's.
[[nodiscard]] PublishResult send_event(Sink& sink, const Event& event);

/// For the outbox: `listeners.on_type("OrderPlaced", sink_listener(sink))`. A receiver that is away does not
/// count as an attempt: the event comes back after `retry_after`, or when the receiver has said.
[[nodiscard]] Listener sink_listener(std::shared_ptr<Sink> sink,
                                     Duration retry_after = std::chrono::seconds{1});

}  // namespace postrider
