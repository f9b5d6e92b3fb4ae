// SPDX-License-Identifier: Apache-2.0
#if defined(POSTRIDER_WITH_RABBITMQ)
#include "postrider/rabbitmq_sink.hpp"

#include <utility>

#include "app/sinks/kind.hpp"

namespace postrider::sinks {

Make read_rabbitmq(config::Section& section, const Common& common) {
  using namespace std::chrono_literals;
  auto options = with_common<RabbitmqSinkOptions>(common);
  // A password does not belong into it; one that is there all the same is not shown.
  section.secret("url", options.url)
      .text("user", options.user)
      .secret("password", options.password)
      .text("queue", options.queue)
      .text("exchange", options.exchange)
      .text("routing-key", options.routing_key)
      .count("pipeline", options.pipeline, 1, 10'000)
      .flag("order-when-full", options.order_when_full)
      .flag("verify-tls", options.verify_tls)
      .text("ca-file", options.ca_file)
      .text("cert-file", options.cert_file)
      .text("key-file", options.key_file)
      .time("connect-timeout-ms", options.connect_timeout, 1ms, 1ms, 10min);
  section.finish();
  return make_by(rabbitmq_sink, std::move(options));
}

}  // namespace postrider::sinks
#endif
