// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "postrider/cloud_events.hpp"
#include "postrider/sink.hpp"

namespace postrider {

struct WebhookSinkOptions {
  std::string name = "webhook";
  /// Where each event is posted to: http:// or https://, without a user or a password, which belong into
  /// `headers`. Up to 2048 characters. Messages show its host alone.
  std::string url{};
  /// Sent with each request: {"Authorization", "Bearer …"}. Up to 32; never shown in a message.
  std::vector<std::pair<std::string, std::string>> headers{};
  /// Keys of Standard Webhooks, "whsec_" and the base64 of 24 to 64 bytes; up to 8. Each makes a signature,
  /// so that a receiver can go over from an old one to a new one. None: requests are not signed.
  std::vector<std::string> secrets{};
  /// Requests at the same time, of different keys; those of one key follow each other. 1: all of them do.
  std::size_t parallel = 1;  ///< 1 to 64
  /// How long one request may take in all, and its connection. A batch takes as long as its requests.
  Duration timeout = std::chrono::seconds{10};         ///< 1 ms to 10 minutes
  Duration connect_timeout = std::chrono::seconds{5};  ///< 1 ms to 10 minutes
  /// Whether the receiver may be in a network that is not public: loopback, 10.0.0.0/8, fd00::/8, the
  /// metadata services of clouds. Holds for the address that is connected to, whatever its name was a moment
  /// before; a `url` with such an address instead of a name is refused when the sink is made.
  bool allow_private = false;
  bool verify_tls = true;
  std::string ca_file{};  ///< PEM; default: the system's authorities
  CloudEventsOptions cloud_events{};
  SinkLimits limits{};
};

/// Posts events to somebody's HTTP endpoint, one per request, over connections that are kept. An answer 2xx
/// is its acknowledgement; 408, 425, 429 and 5xx mean later (after `Retry-After`, when it says so), other 4xx
/// that the event is refused. After 410 nothing is sent any more, until the sink is revived or made anew.
/// Redirects are not followed, proxies of the environment not used.
[[nodiscard]] std::shared_ptr<Sink> webhook_sink(WebhookSinkOptions options);

}  // namespace postrider
