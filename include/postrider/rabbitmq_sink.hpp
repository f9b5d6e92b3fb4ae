// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "postrider/cloud_events.hpp"
#include "postrider/sink.hpp"

namespace postrider {

struct RabbitmqSinkOptions {
  std::string name = "rabbitmq";
  /// "amqp://host:5672/virtual-host", or amqps:// for TLS (port 5671). Without a virtual host: "/". User and
  /// password have their own place below, where no message shows them.
  std::string url = "amqp://localhost:5672";
  std::string user = "guest";      ///< up to 255 bytes
  std::string password = "guest";  ///< up to 4096 bytes

  /// All events go to this queue. When it is not there it is made: durable, of the broker's default type. One
  /// that is there stays as it is: make a quorum queue beforehand where several brokers shall keep it. Up to
  /// 255 bytes.
  std::string queue{};
  /// Instead of a queue: an exchange, which must be there (empty: the default one), and a routing key with
  /// {topic}, {type} and {key} in it. Up to 255 bytes, each.
  std::string exchange{};
  std::string routing_key = "{type}";

  /// How many messages may be on their way without an acknowledgement.
  std::size_t pipeline = 500;  ///< 1 to 10,000
  /// A broker may refuse a message (no queue for its routing key, a full queue with the overflow
  /// reject-publish) and take those behind it. True: of each key one message is on its way at a time, so that
  /// none passes another one of its key even then; other keys go ahead. False: all go in their order, and may
  /// pass one that is refused; faster where keys are few.
  bool order_when_full = true;
  /// How long the broker may take to acknowledge the next message.
  Duration timeout = std::chrono::seconds{10};         ///< 1 ms to 10 minutes
  Duration connect_timeout = std::chrono::seconds{3};  ///< 1 ms to 10 minutes
  bool verify_tls = true;
  std::string ca_file{};    ///< PEM; default: the system's authorities
  std::string cert_file{};  ///< PEM, with `key_file`: who we are
  std::string key_file{};
  CloudEventsOptions cloud_events{};
  SinkLimits limits{};
};

/// Publishes events to RabbitMQ (AMQP 0-9-1) as persistent messages with the event's id as their message id.
/// Sent is what the broker has confirmed, and what it has found a queue for. Connects when there is something
/// to send, and again after a failure.
[[nodiscard]] std::shared_ptr<Sink> rabbitmq_sink(RabbitmqSinkOptions options);

}  // namespace postrider
