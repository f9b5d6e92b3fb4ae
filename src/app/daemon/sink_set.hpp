// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/config/daemon_config.hpp"
#include "app/daemon/sink_health.hpp"
#include "postrider/sink.hpp"

namespace postrider::daemon {

/// What sinks refuse when they are made, each with its line. For who was refused one of them.
[[nodiscard]] std::vector<Error> refused_sinks(const std::vector<config::SinkConfig>& configs);

/// The receivers of a configuration by name. They connect when they are first needed.
class SinkSet {
 public:
  /// Throws Error(invalid_argument) for options that sinks refuse: all of them, each with its line.
  SinkSet(const std::vector<config::SinkConfig>& configs, const LogCallback& log);
  ~SinkSet();
  SinkSet(const SinkSet&) = delete;
  SinkSet& operator=(const SinkSet&) = delete;

  /// Throws std::out_of_range for a name that the configuration would not have passed with.
  [[nodiscard]] const std::shared_ptr<Sink>& at(const std::string& name) const {
    return sinks_.at(name).sink;
  }
  /// For the relay: a sink, or one of the publishers that need no table.
  [[nodiscard]] std::shared_ptr<Publisher> publisher(const std::string& name);

  [[nodiscard]] std::vector<SinkHealth> health() const;
  /// Those whose receivers have said that they want no events any more are sent to again.
  void revive();
  /// Ends what is being sent, for a stop that must not wait.
  void close() noexcept;

 private:
  struct Entry {
    std::shared_ptr<Sink> sink;
    std::string type;
    std::string key_tag;
  };
  std::map<std::string, Entry> sinks_;
  std::map<std::string, std::shared_ptr<Publisher>> publishers_;
  LogCallback log_;
};

}  // namespace postrider::daemon
