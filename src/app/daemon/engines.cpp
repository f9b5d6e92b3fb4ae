// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/engines.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace postrider::daemon {
namespace {

using config::DaemonConfig;
using config::RouteConfig;

/// Where an event of the outbox goes.
class Routes {
 public:
  Routes(const DaemonConfig::Outbox& config, const SinkSet& sinks)
      : unrouted_is_dead_(config.unrouted_is_dead) {
    for (const RouteConfig& route : config.routes) {
      routes_.push_back({route, sink_listener(sinks.at(route.sink)), route.sink});
    }
  }
  Outcome operator()(const Event& event, const Delivery& delivery) const {
    std::vector<std::string_view> sent;
    for (const Entry& entry : routes_) {
      // Two routes may lead the same event to the same place.
      if (!entry.route.matches(event) || std::find(sent.begin(), sent.end(), entry.sink) != sent.end())
        continue;
      // One that is away holds the event back for all: those before it get it again, with the same id.
      Outcome outcome = entry.listener(event, delivery);
      if (outcome.kind() != Outcome::Kind::done) return outcome;
      sent.push_back(entry.sink);
    }
    if (sent.empty() && unrouted_is_dead_) {
      return Outcome::dead("no route takes an event of type '" + event.type() + "', aggregate '" +
                           event.aggregate_type() + "', tenant '" + event.tenant_id() + "'");
    }
    return Outcome::done();
  }

 private:
  struct Entry {
    RouteConfig route;
    Listener listener;
    std::string sink;
  };
  std::vector<Entry> routes_;
  bool unrouted_is_dead_;
};

}  // namespace

Engines::Engines(Storage& storage, const DaemonConfig& config, SinkSet& sinks,
                 metrics::PrometheusMetrics& metrics, const LogCallback& log)
    : maintenance_(storage, config, metrics, Clock::system(), log) {
  if (config.relay.enabled) {
    RelayOptions options = config.relay.options;
    options.node_name = config.node_name;
    options.metrics = &metrics;
    options.log = log;
    relay_ = std::make_unique<Relay>(storage, std::move(options));
    for (const config::TopicConfig& topic : config.relay.topics) {
      for (const std::string& name : topic.publishers)
        relay_->add(topic.topic, sinks.publisher(name), topic.pair);
    }
  }
  if (config.outbox.enabled) {
    OutboxOptions options = config.outbox.options;
    options.node_name = config.node_name;
    options.metrics = &metrics;
    options.log = log;
    outbox_ = std::make_unique<Outbox>(storage, std::move(options));
    outbox_->on_all(Routes(config.outbox, sinks));
  }
}

Engines::~Engines() {
  stop();
}

void Engines::start() {
  if (outbox_) outbox_->start();
  if (relay_) relay_->start();
  maintenance_.start();
}

void Engines::stop() {
  maintenance_.stop();
  if (relay_) relay_->stop();
  if (outbox_) outbox_->stop();
}

}  // namespace postrider::daemon
