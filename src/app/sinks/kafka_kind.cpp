// SPDX-License-Identifier: Apache-2.0
#if defined(POSTRIDER_WITH_KAFKA)
#include "postrider/kafka_sink.hpp"

#include <utility>

#include "app/sinks/kind.hpp"

namespace postrider::sinks {

Make read_kafka(config::Section& section, const Common& common) {
  auto options = with_common<KafkaSinkOptions>(common);
  section.text("brokers", options.brokers).text("topic", options.topic).rest("kafka.", options.properties);
  section.finish();
  if (options.brokers.empty()) section.refuse("brokers", "it is missing", "write brokers = \"host:9092\"");
  if (options.topic.empty())
    section.refuse("topic", "it is missing", "write topic = \"events\", or \"{topic}\"");
  return make_by(kafka_sink, std::move(options));
}

}  // namespace postrider::sinks
#endif
