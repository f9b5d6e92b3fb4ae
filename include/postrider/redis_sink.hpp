// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "postrider/cloud_events.hpp"
#include "postrider/sink.hpp"

namespace postrider {

struct RedisSinkOptions {
  std::string name = "redis";  ///< 1 to 128 characters
  /// redis://user:password@host:port/database, all but the host optional, or
  /// unix:///path/to/redis.sock?db=database. Special characters percent-encoded.
  std::string url = "redis://127.0.0.1:6379";
  std::string username{};  ///< up to 512 bytes; when not empty, instead of the URL's
  std::string password{};  ///< up to 4096 bytes; likewise
  /// The stream's key. `{topic}` and `{type}` are replaced by the message's; the topic of the outbox's events
  /// is "outbox".
  std::string stream = "postrider:{topic}";  ///< 1 to 512 characters
  /// Older entries are cut when a stream has about so many (MAXLEN ~); 0: never.
  std::size_t max_len = 0;  ///< up to 10^12
  /// A batch counts as sent when so many replicas have it as well (WAIT); 0: when the server has it.
  int wait_replicas = 0;                            ///< up to 100
  Duration wait_timeout = std::chrono::seconds{1};  ///< 1 ms up to `timeout`
  /// For a batch, connecting included. What was not acknowledged by then counts as not sent.
  Duration timeout = std::chrono::seconds{10};         ///< 1 ms to 10 minutes
  Duration connect_timeout = std::chrono::seconds{3};  ///< per address of the host. 1 ms to 10 minutes
  CloudEventsOptions cloud_events{};
  SinkLimits limits{};
};

/// Events as entries of Redis streams, for Redis 5 and newer. An entry has the fields `key`, `content-type`,
/// `ce_id` and all other attributes of CloudEvents as `ce_<name>`, the event's headers as `h_<name>`, and
/// `data`. A batch is sent in transactions (MULTI … EXEC) of up to 1 MiB, so that a server that is full in
/// the middle of one takes none of it, and order is kept.
///
/// Redis acknowledges what it has in memory: whether a crash of the server loses it is a matter of its
/// settings (`appendonly yes`, `appendfsync always`). It knows no message ids: after a failure an entry may
/// come twice, with the same `ce_id`. No TLS: hiredis of Debian 12 has none.
[[nodiscard]] std::shared_ptr<Sink> redis_sink(RedisSinkOptions options);

}  // namespace postrider
