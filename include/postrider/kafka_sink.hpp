// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "postrider/cloud_events.hpp"
#include "postrider/sink.hpp"

namespace postrider {

struct KafkaSinkOptions {
  std::string name = "kafka";  ///< 1 to 128 characters
  /// Where to ask for the cluster: "host:port,host:port".
  std::string brokers{};
  /// Where events go. `{topic}` is replaced by the relay's topic, `{type}` by the event's type: "orders",
  /// "shop.{topic}". What comes out must be a name for Kafka (1 to 249 of a-z, A-Z, 0-9, `.`, `_`, `-`), else
  /// the event is refused; so is an event of the outbox, which has no topic, where `{topic}` is asked for.
  std::string topic{};
  /// Any further property of librdkafka, as its CONFIGURATION.md has them: "security.protocol",
  /// "sasl.password", "compression.type", …. Those on which order and safety rest are not to be set:
  /// idempotence, acks, the message timeout, transactions.
  std::map<std::string, std::string> properties{};
  /// How long one batch may take until all brokers that must have it have said so.
  Duration timeout = std::chrono::seconds{10};  ///< 100 ms to 10 minutes
  CloudEventsOptions cloud_events{};
  SinkLimits limits{};
};

/// Events to a Kafka topic, by an idempotent producer that waits for all in-sync replicas. A message's key is
/// hashed as Java's clients do it, and the order within a key is kept whatever fails: a batch that was not
/// acknowledged in time is taken back and its producer is replaced before the next one. Timestamps are
/// the brokers' business, because topics delete by them: when it happened is said by `ce_time`.
/// Throws Error(invalid_argument) for an option out of bounds, and with librdkafka's words for a property
/// that it refuses. Connects with the first message.
[[nodiscard]] std::shared_ptr<Sink> kafka_sink(KafkaSinkOptions options);

}  // namespace postrider
