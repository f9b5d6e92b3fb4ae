// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/option_check.hpp"
#include "postrider/publishers.hpp"

namespace postrider {

LogPublisher::LogPublisher(LogCallback log, LogLevel level, std::string name)
    : log_(guarded(std::move(log))), level_(level), name_(std::move(name)) {}

PublishResult LogPublisher::publish_batch(std::span<const StoredEvent> events,
                                          const PublishContext& context) {
  for (const StoredEvent& event : events) {
    std::string line(context.topic);
    line += " #" + std::to_string(static_cast<std::int64_t>(event.position())) + " " + event.type();
    for (const Tag& tag : event.tags()) line += " " + tag.encode();
    log_(level_, line + " " + event.id().str());
  }
  return PublishResult::all();
}

}  // namespace postrider
