// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "postrider/cloud_events.hpp"
#include "postrider/sink.hpp"

namespace postrider {

struct NatsSinkOptions {
  std::string name = "nats";  ///< 1 to 128 characters
  /// nats://user:password@host:port, nats://token@host:port, or tls://…; several servers of a cluster are
  /// separated by commas, and the first one's user is for all. Special characters percent-encoded.
  std::string url = "nats://127.0.0.1:4222";
  std::string username{};  ///< these four up to 4096 bytes; instead of the URL's when not empty
  std::string password{};
  std::string token{};
  std::string credentials_file{};  ///< of a user with JWT and NKey
  bool tls = false;                ///< also without tls:// in the URL
  std::string tls_ca{};            ///< files in PEM; default: the system's authorities
  std::string tls_cert{};          ///< for a server that asks for one, together with `tls_key`
  std::string tls_key{};
  /// The one stream that takes what this sink sends. 1 to 255 characters without spaces, dots, slashes and
  /// wildcards.
  std::string stream = "postrider";
  /// `{topic}` and `{type}` are replaced by the message's, in which dots, wildcards, spaces and control
  /// characters become '_'; the topic of the outbox's events is "outbox".
  std::string subject = "postrider.{topic}";  ///< 1 to 255 characters
  /// Whether a stream that is missing is made, for all subjects that this sink can send to: in files, with
  /// no bounds.
  bool create_stream = false;
  int replicas = 1;  ///< of a stream that is made here. 1 to 5
  /// How long a stream that is made here knows what it has taken, to drop repeats.
  Duration duplicates = std::chrono::minutes{2};  ///< 100 ms to 30 days
  /// For a batch, connecting included. What was not acknowledged by then counts as not sent.
  Duration timeout = std::chrono::seconds{10};         ///< 1 ms to 10 minutes
  Duration connect_timeout = std::chrono::seconds{2};  ///< per server. 1 ms to 1 minute
  CloudEventsOptions cloud_events{};
  SinkLimits limits{};
};

/// Events as messages of a NATS JetStream, with attributes of CloudEvents as headers `ce-<name>`,
/// `content-type`, the event's own headers, and `Nats-Msg-Id`, by which the stream drops repeats: the event's
/// id with a hash of subject, topic, payload and headers, so that nothing else is taken for one. Up to 1 MiB
/// is on its way at a time, and of each key one message: a stream that is full may take a small message
/// behind a large one that it has refused, and so keeps no order among messages on their way.
///
/// JetStream acknowledges what it has written to its file, which survives a crash of the server; against a
/// power cut it needs `sync_interval: always` (NATS 2.10) or replicas.
[[nodiscard]] std::shared_ptr<Sink> nats_sink(NatsSinkOptions options);

}  // namespace postrider
