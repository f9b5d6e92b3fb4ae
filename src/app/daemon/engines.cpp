// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/engines.hpp"

#include <utility>
#include <vector>

namespace postrider::daemon {
namespace {

using config::DaemonConfig;

std::unique_ptr<Routes> routes_of(const DaemonConfig::Outbox& config, const SinkSet& sinks) {
  std::vector<Routes::Route> routes;
  for (const config::RouteConfig& route : config.routes) routes.push_back({route, sinks.at(route.sink)});
  return std::make_unique<Routes>(routes, Routes::Options{.unrouted_is_dead = config.unrouted_is_dead,
                                                          .max_attempts = config.options.retry_max_attempts});
}

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
    routes_ = routes_of(config.outbox, sinks);
    outbox_->on_all([routes = routes_.get()](const Event& event, const Delivery& delivery) {
      return (*routes)(event, delivery);
    });
    recaller_ = std::make_unique<Recaller>(
        storage, routes_->parked(), [outbox = outbox_.get()] { outbox->poll(); }, log);
  }
}

Engines::~Engines() {
  stop();
}

void Engines::start() {
  if (outbox_) outbox_->start();
  if (recaller_) recaller_->start();
  if (relay_) relay_->start();
  maintenance_.start();
}

void Engines::revive() {
  if (routes_) routes_->parked().revive();
}

void Engines::stop() {
  maintenance_.stop();
  if (recaller_) recaller_->stop();
  if (relay_) relay_->stop();
  if (outbox_) outbox_->stop();
}

}  // namespace postrider::daemon
