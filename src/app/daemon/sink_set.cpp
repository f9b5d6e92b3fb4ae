// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/sink_set.hpp"

#include "core/without_prefix.hpp"
#include "postrider/error.hpp"
#include "postrider/publishers.hpp"

namespace postrider::daemon {
namespace {

/// What a sink refuses is told with its name.
std::shared_ptr<Sink> make(const config::SinkConfig& config, const LogCallback& log) {
  try {
    return config.make(log);
  } catch (const Error& error) {
    throw Error(error.code(), "sinks." + config.name + " is refused", without_prefix(error.what()));
  }
}

}  // namespace

SinkSet::SinkSet(const std::vector<config::SinkConfig>& configs, const LogCallback& log) : log_(log) {
  for (const config::SinkConfig& config : configs) {
    sinks_.emplace(config.name, Entry{make(config, log), config.type, config.key_tag});
  }
}

SinkSet::~SinkSet() {
  close();
}

std::shared_ptr<Publisher> SinkSet::publisher(const std::string& name) {
  std::shared_ptr<Publisher>& publisher = publishers_[name];
  if (publisher != nullptr) return publisher;
  if (const auto found = sinks_.find(name); found != sinks_.end()) {
    publisher = sink_publisher(found->second.sink, {.name = name, .key_tag = found->second.key_tag});
  } else if (name == "LogPublisher") {
    publisher = std::make_shared<LogPublisher>(log_);
  } else {
    publisher = std::make_shared<StatisticsPublisher>(name);
  }
  return publisher;
}

std::vector<SinkHealth> SinkSet::health() const {
  std::vector<SinkHealth> all;
  for (const auto& [name, entry] : sinks_) {
    all.push_back({name, entry.sink->healthy(), entry.type, entry.sink->trouble(), entry.sink->counts()});
  }
  return all;
}

void SinkSet::revive() {
  for (const auto& [name, entry] : sinks_) entry.sink->revive();
}

void SinkSet::close() noexcept {
  for (const auto& [name, entry] : sinks_) entry.sink->close();
}

}  // namespace postrider::daemon
