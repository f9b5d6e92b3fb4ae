// SPDX-License-Identifier: Apache-2.0
#include "outbox/options.hpp"

#include <utility>

#include "core/option_check.hpp"
#include "core/wording.hpp"

namespace postrider {

OutboxOptions checked(OutboxOptions options) {
  using namespace std::chrono_literals;
  constexpr Duration day = 24h;
  const OptionCheck check("OutboxOptions");
  check.count("workers", options.workers, 1, 1024);
  check.count("hot_queue_capacity", options.hot_queue_capacity, 1, 1'000'000);
  check.count("cold_queue_capacity", options.cold_queue_capacity, 1, 1'000'000);
  constexpr std::size_t mebi = std::size_t{1} << 20;
  check.count("hot_queue_bytes", options.hot_queue_bytes, mebi, mebi << 20);
  check.count("cold_queue_bytes", options.cold_queue_bytes, mebi, mebi << 20);
  check.time("poller_interval", options.poller_interval, 1ms, day);
  check.count("poller_batch_size", options.poller_batch_size, 1, 10'000);
  check.time("poller_skip_recent", options.poller_skip_recent, 0ms, day);
  check.number("retry_max_attempts", options.retry_max_attempts, 1, 1'000'000);
  check.time("lease", options.lease, 100ms, day);
  check.count("completer_batch_size", options.completer_batch_size, 1, 10'000);
  check.time("completer_linger", options.completer_linger, 0ms, 1s);
  check.time("drain_timeout", options.drain_timeout, 0ms, day);
  check.text("node_name", options.node_name, 64);
  if (!options.retry_policy) {
    check.time("retry_base_delay", options.retry_base_delay, 1us, 365 * day);
    check.time("retry_max_delay", options.retry_max_delay, 1us, 365 * day);
    if (options.retry_max_delay < options.retry_base_delay) {
      check.refuse("retry_max_delay", text_of(options.retry_max_delay),
                   "at least retry_base_delay, which is " + text_of(options.retry_base_delay));
    }
    options.retry_policy = std::make_shared<const ExponentialBackoffRetryPolicy>(options.retry_base_delay,
                                                                                 options.retry_max_delay);
  }
  if (options.node_name.empty()) options.node_name = default_node_name();
  if (options.clock == nullptr) options.clock = &Clock::system();
  if (options.metrics == nullptr) options.metrics = &MetricsExporter::none();
  options.log = guarded(std::move(options.log));
  return options;
}

}  // namespace postrider
