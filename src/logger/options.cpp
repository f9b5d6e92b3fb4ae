// SPDX-License-Identifier: Apache-2.0
#include "logger/options.hpp"

#include <utility>

#include "core/option_check.hpp"
#include "core/wording.hpp"

namespace postrider::logger {

LoggerOptions checked(LoggerOptions options) {
  using namespace std::chrono_literals;
  constexpr Duration day = 24h;
  const OptionCheck check("LoggerOptions");
  check.count("queue_capacity", options.queue_capacity, 1, 10'000'000);
  check.number("max_retries", options.max_retries, 0, 100);
  check.time("base_retry_delay", options.base_retry_delay, 1us, day);
  check.time("max_retry_delay", options.max_retry_delay, 1us, day);
  if (options.max_retry_delay < options.base_retry_delay) {
    check.refuse("max_retry_delay", text_of(options.max_retry_delay),
                 "at least base_retry_delay, which is " + text_of(options.base_retry_delay));
  }
  if (!(options.retry_budget >= 0 && options.retry_budget <= 10)) {
    check.refuse("retry_budget", std::to_string(options.retry_budget), "between 0 and 10");
  }
  check.number("circuit_breaker_threshold", options.circuit_breaker_threshold, 1, 1000);
  check.time("circuit_breaker_reset", options.circuit_breaker_reset, 1ms, day);
  check.count("batch_size", options.batch_size, 1, 10'000);
  check.count("sender_threads", options.sender_threads, 1, 64);
  check.time("max_batch_wait", options.max_batch_wait, 0us, 1h);
  check.count("max_spillover_events", options.max_spillover_events, 1, 1'000'000'000'000);
  check.count("max_spillover_bytes", options.max_spillover_bytes, 4096, std::uint64_t{1} << 50U);
  check.time("fsync_interval", options.fsync_interval, 1ms, 1h);
  check.time("replay_interval", options.replay_interval, 1ms, day);
  check.count("replay_batch_size", options.replay_batch_size, 1, 10'000);
  check.count("replay_rate", options.replay_rate, 0, 100'000'000);
  check.count("ring_bytes", options.ring_bytes, 64 * 1024, std::size_t{1} << 30U);
  check.time("block_timeout", options.block_timeout, 0us, day);
  check.time("shutdown_timeout", options.shutdown_timeout, 0us, day);
  if (options.ring == RingMode::mapped && options.spillover_path.empty()) {
    check.refuse("ring", "mapped", "memory, unless spillover_path names the folder for its files");
  }
  if (options.clock == nullptr) options.clock = &Clock::system();
  if (options.metrics == nullptr) options.metrics = &MetricsExporter::none();
  options.log = guarded(std::move(options.log));
  return options;
}

}  // namespace postrider::logger
