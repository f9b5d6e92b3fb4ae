// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/section.hpp"
#include "postrider/clock.hpp"
#include "postrider/error.hpp"
#include "postrider/log.hpp"
#include "postrider/outbox.hpp"
#include "postrider/relay.hpp"
#include "postrider/sink.hpp"
#include "postrider/storage.hpp"

namespace postrider::config {

/// A receiver by its name: [sinks.<name>]. It is made when the daemon starts.
struct SinkConfig {
  std::string name{};
  std::string type{};
  std::string key_tag{};
  std::function<std::shared_ptr<Sink>(const LogCallback& log)> make{};
  std::string where{};  ///< its table: "shop.toml, line 7"; empty when it is not from a file
  /// Of its options: "shop.toml, line 9" for "url". Not those that have their defaults.
  std::map<std::string, std::string> places{};
};

/// [relay.topics.<name>]
struct TopicConfig {
  Topic topic{};
  std::vector<std::string> publishers{};
  PairOptions pair{};
};

/// [[outbox.routes]]: events that match all that is given go to the sink.
struct RouteConfig {
  std::string type{};       ///< empty: any
  std::string aggregate{};  ///< its type; empty: any
  std::string tenant{};     ///< empty: any
  std::string sink{};

  [[nodiscard]] bool matches(const Event& event) const;
};

/// What `postrider serve` is told.
struct DaemonConfig {
  struct Storage {
    std::string url{};
    std::string schema = "postrider";
    StorageOptions options{};
    bool migrate = true;
    bool wait = true;  ///< for a database that is away at the start
  } storage{};
  struct Server {
    std::string listen = "127.0.0.1:8080";
    std::size_t max_connections = 1024;
    std::string tls_certificate{};
    std::string tls_key{};
    std::string token_file{};
    std::vector<std::string> allowed_hosts{};
    bool metrics = true;
    bool dashboard = true;
    bool management = true;
    Duration request_timeout = std::chrono::seconds{10};
    Duration drain_timeout = std::chrono::seconds{10};
  } server{};
  struct Relay {
    bool enabled = false;
    RelayOptions options{};
    std::vector<TopicConfig> topics{};
  } relay{};
  struct Outbox {
    bool enabled = false;
    OutboxOptions options{};
    std::vector<RouteConfig> routes{};
    /// An event that no route takes: a dead letter, or done.
    bool unrouted_is_dead = true;
    std::optional<Duration> purge_done_after{};
    std::optional<Duration> purge_dead_after{};
  } outbox{};
  struct Queue {
    /// Between two rounds of maintenance, that of the outbox too.
    Duration cleanup_interval = std::chrono::minutes{1};
    /// After which events that their workers have abandoned, and nobody has taken, are told of.
    Duration abandoned_timeout = std::chrono::minutes{1};
    std::optional<Duration> purge_log_after{};
    Duration stuck_after = std::chrono::minutes{5};
  } queue{};
  struct EventLog {
    bool enabled = false;  ///< the Event Log API
    std::size_t max_batch = 1000;
    std::optional<Duration> retention{};
  } eventlog{};
  struct Spill {
    std::vector<std::string> folders{};  ///< where loggers on this machine spill to; for GET /api/spill
  } spill{};
  std::string node_name{};
  LogLevel log_level = LogLevel::info;
  std::vector<SinkConfig> sinks{};
  /// Where an option stands: "shop.toml, line 7" for "server.listen". Not those that have their defaults.
  std::map<std::string, std::string> places{};
};

/// A configuration that was read, and how it came to be.
struct ReadConfig {
  DaemonConfig config;
  std::vector<Effective> effective;
};

/// Throws Error(invalid_argument) that names all lines that are refused, or Error(unavailable) for a file
/// that cannot be read. `environment` as main gets it; null: the process's own.
[[nodiscard]] ReadConfig read_daemon_config(const std::string& path,
                                            const char* const* environment = nullptr);
[[nodiscard]] ReadConfig parse_daemon_config(std::string_view text, const std::string& name,
                                             const char* const* environment = nullptr);

/// For those who need no more than one table, "storage": the secrets of all others are not read, but what is
/// misspelt is refused.
[[nodiscard]] DaemonConfig read_config_of(std::string table, const std::string& path);
[[nodiscard]] DaemonConfig parse_config_of(std::string table, std::string_view text, const std::string& name,
                                           const char* const* environment = nullptr);

/// Throws what was refused when the parts were made: all of it. Nothing when it was nothing.
void refuse_all(std::span<const Error> errors);

/// Of two readings of a configuration, the options that differ: "relay.workers".
[[nodiscard]] std::vector<std::string> changed_options(const std::vector<Effective>& before,
                                                       const std::vector<Effective>& after);

/// As a TOML file with comments: what is in force, and where it comes from.
[[nodiscard]] std::string print_config(const std::vector<Effective>& effective);

}  // namespace postrider::config
