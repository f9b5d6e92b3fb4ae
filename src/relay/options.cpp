// SPDX-License-Identifier: Apache-2.0
#include "relay/options.hpp"

#include "core/option_check.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t most_name_chars = 48;
constexpr std::size_t kibi = 1024;

}  // namespace

RelayOptions checked(RelayOptions options) {
  const OptionCheck check("RelayOptions");
  check.time("lease", options.lease, 300ms, 1h);
  check.time("heartbeat", options.heartbeat, 10ms, options.lease / 3);
  check.count("workers", options.workers, 1, 64);
  check.count("max_workers", options.max_workers, options.workers, 1024);
  check.count("tail_bytes", options.tail_bytes, 64 * kibi, kibi * kibi * kibi);
  check.count("batch_bytes", options.batch_bytes, kibi, 256 * kibi * kibi);
  check.count("unwritten_batches", options.unwritten_batches, 1, 1000);
  check.time("idle_checkpoint", options.idle_checkpoint, 100ms, 24h);
  check.time("stop_timeout", options.stop_timeout, 0ms, 24h);
  check.text("node_name", options.node_name, most_name_chars);
  if (options.clock == nullptr) options.clock = &Clock::system();
  if (options.metrics == nullptr) options.metrics = &MetricsExporter::none();
  options.log = guarded(std::move(options.log));
  return options;
}

void check(const PairOptions& options) {
  const OptionCheck check("PairOptions");
  check.time("polling_interval", options.polling_interval, 1ms, 24h);
  check.count("batch_size", options.batch_size, 1, 10'000);
  check.number("backoff.threshold", options.backoff.threshold, 0, 1000);
  check.number("backoff.multiplier", options.backoff.multiplier, 1, 1000);
  check.time("backoff.max", options.backoff.max, 1ms, 24h);
  check.number("max_failures", options.max_failures, 1, 1'000'000);
  const auto& start = options.start.position();
  if (start.has_value() && *start < Position{0}) {
    check.refuse("start", std::to_string(static_cast<std::int64_t>(*start)), "0 or more");
  }
}

}  // namespace postrider
