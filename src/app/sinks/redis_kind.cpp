// SPDX-License-Identifier: Apache-2.0
#if defined(POSTRIDER_WITH_REDIS)
#include "postrider/redis_sink.hpp"

#include <utility>

#include "app/sinks/kind.hpp"

namespace postrider::sinks {

Make read_redis(config::Section& section, const Common& common) {
  using namespace std::chrono_literals;
  auto options = with_common<RedisSinkOptions>(common);
  section.secret("url", options.url)
      .text("username", options.username)
      .secret("password", options.password)
      .text("stream", options.stream)
      .count("max-len", options.max_len, 0, 1'000'000'000'000)
      .number("wait-replicas", options.wait_replicas, 0, 100)
      .time("wait-timeout-ms", options.wait_timeout, 1ms, 1ms, 10min)
      .time("connect-timeout-ms", options.connect_timeout, 1ms, 1ms, 10min);
  section.finish();
  return make_by(redis_sink, std::move(options));
}

}  // namespace postrider::sinks
#endif
