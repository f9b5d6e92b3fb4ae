// SPDX-License-Identifier: Apache-2.0
#include "logger/options.hpp"

#include <utility>

#include "core/entry_limits.hpp"
#include "core/option_check.hpp"
#include "core/utf8.hpp"
#include "core/wording.hpp"

namespace postrider::logger {

LoggerOptions checked(LoggerOptions options) {
  const OptionCheck check("LoggerOptions");
  check.count("queue_capacity", options.queue_capacity, bounds::queue_capacity.least,
              bounds::queue_capacity.most);
  check.number("max_retries", options.max_retries, bounds::max_retries.least, bounds::max_retries.most);
  check.time("base_retry_delay", options.base_retry_delay, bounds::base_retry_delay.least,
             bounds::base_retry_delay.most);
  check.time("max_retry_delay", options.max_retry_delay, bounds::max_retry_delay.least,
             bounds::max_retry_delay.most);
  if (options.max_retry_delay < options.base_retry_delay) {
    check.refuse("max_retry_delay", text_of(options.max_retry_delay),
                 "at least base_retry_delay, which is " + text_of(options.base_retry_delay));
  }
  if (!(options.retry_budget >= bounds::retry_budget.least &&
        options.retry_budget <= bounds::retry_budget.most)) {
    check.refuse("retry_budget", std::to_string(options.retry_budget), "between 0 and 10");
  }
  check.number("circuit_breaker_threshold", options.circuit_breaker_threshold,
               bounds::circuit_breaker_threshold.least, bounds::circuit_breaker_threshold.most);
  check.time("circuit_breaker_reset", options.circuit_breaker_reset, bounds::circuit_breaker_reset.least,
             bounds::circuit_breaker_reset.most);
  check.count("batch_size", options.batch_size, bounds::batch_size.least, bounds::batch_size.most);
  check.count("sender_threads", options.sender_threads, bounds::sender_threads.least,
              bounds::sender_threads.most);
  check.time("max_batch_wait", options.max_batch_wait, bounds::max_batch_wait.least,
             bounds::max_batch_wait.most);
  check.count("max_spillover_events", options.max_spillover_events, bounds::max_spillover_events.least,
              bounds::max_spillover_events.most);
  check.count("max_spillover_bytes", options.max_spillover_bytes, bounds::max_spillover_bytes.least,
              bounds::max_spillover_bytes.most);
  check.time("fsync_interval", options.fsync_interval, bounds::fsync_interval.least,
             bounds::fsync_interval.most);
  check.time("replay_interval", options.replay_interval, bounds::replay_interval.least,
             bounds::replay_interval.most);
  check.count("replay_batch_size", options.replay_batch_size, bounds::replay_batch_size.least,
              bounds::replay_batch_size.most);
  check.count("replay_rate", options.replay_rate, bounds::replay_rate.least, bounds::replay_rate.most);
  check.count("ring_bytes", options.ring_bytes, bounds::ring_bytes.least, bounds::ring_bytes.most);
  check.time("block_timeout", options.block_timeout, bounds::block_timeout.least, bounds::block_timeout.most);
  check.time("shutdown_timeout", options.shutdown_timeout, bounds::shutdown_timeout.least,
             bounds::shutdown_timeout.most);
  if (options.ring == RingMode::mapped && options.spillover_path.empty()) {
    check.refuse("ring", "mapped", "memory, unless spillover_path names the folder for its files");
  }
  const auto check_text = [&](const char* name, const std::string& text, const EntryBound& bound) {
    const bool fits = utf8_length(text).value_or(bound.most + 1) <= bound.most;
    if (!fits || text.find('\0') != std::string::npos)
      check.refuse(name, "too long or no text", "up to " + counted(bound.most, "character") + " of UTF-8");
  };
  check_text("application_id", options.application_id, entry_bounds::application_id);
  check_text("originating_system", options.originating_system, entry_bounds::originating_system);
  check_text("user_id", options.user_id, entry_bounds::user_id);
  if (options.clock == nullptr) options.clock = &Clock::system();
  if (options.metrics == nullptr) options.metrics = &MetricsExporter::none();
  options.log = guarded(std::move(options.log));
  return options;
}

}  // namespace postrider::logger
