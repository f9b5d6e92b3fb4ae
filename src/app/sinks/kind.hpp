// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "config/section.hpp"
#include "postrider/cloud_events.hpp"
#include "postrider/sink.hpp"

namespace postrider::sinks {

/// What every sink's table may say.
struct Common {
  std::string name{};
  CloudEventsOptions cloud_events{};
  Duration timeout = std::chrono::seconds{10};
  SinkLimits limits{};
};

using Make = std::function<std::shared_ptr<Sink>(const LogCallback& log)>;

/// The options of a sink that speaks to a server, with what its table has in common with the others'.
template <class Options>
[[nodiscard]] Options with_common(const Common& common) {
  Options options;
  options.name = common.name;
  options.timeout = common.timeout;
  options.cloud_events = common.cloud_events;
  options.limits = common.limits;
  return options;
}

/// Makes the sink later, when there is something to log to.
template <class Options>
[[nodiscard]] Make make_by(std::shared_ptr<Sink> (*open)(Options), Options options) {
  return [open, options = std::move(options)](const LogCallback& log) {
    Options logged = options;
    logged.limits.log = log;
    return open(std::move(logged));
  };
}

// Each reads the rest of its table. Those whose component this build lacks have no body.
Make read_kafka(config::Section& section, const Common& common);
Make read_nats(config::Section& section, const Common& common);
Make read_rabbitmq(config::Section& section, const Common& common);
Make read_redis(config::Section& section, const Common& common);
Make read_webhook(config::Section& section, const Common& common);

}  // namespace postrider::sinks
