// SPDX-License-Identifier: Apache-2.0
#include "outbox/options.hpp"

#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "core/utf8.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider {

namespace {

constexpr std::size_t most_node_chars = 64;

[[noreturn]] void refuse(std::string_view option, const std::string& value, const std::string& bounds) {
  throw Error(ErrorCode::invalid_argument, "cannot use OutboxOptions::" + std::string(option) + " = " + value,
              "it must be " + bounds);
}

void check_count(std::string_view option, std::size_t value, std::size_t least, std::size_t most) {
  if (value < least || value > most) {
    refuse(option, std::to_string(value),
           "between " + std::to_string(least) + " and " + std::to_string(most));
  }
}

void check_time(std::string_view option, Duration value, Duration least, Duration most) {
  if (value < least || value > most) {
    refuse(option, text_of(value), "between " + text_of(least) + " and " + text_of(most));
  }
}

std::string default_node_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {"host"};
  const std::string name(utf8_prefix(host.data(), 32));
  // The random tail keeps a restarted process with a recycled pid apart from its predecessor.
  return utf8_repaired(name) + "/" + std::to_string(getpid()) + "/" +
         std::string(new_event_id().view().substr(16));
}

}  // namespace

OutboxOptions checked(OutboxOptions options) {
  using namespace std::chrono_literals;
  constexpr Duration day = 24h;
  check_count("workers", options.workers, 1, 1024);
  check_count("hot_queue_capacity", options.hot_queue_capacity, 1, 1'000'000);
  check_count("cold_queue_capacity", options.cold_queue_capacity, 1, 1'000'000);
  check_time("poller_interval", options.poller_interval, 1ms, day);
  check_count("poller_batch_size", options.poller_batch_size, 1, 10'000);
  check_time("poller_skip_recent", options.poller_skip_recent, 0ms, day);
  if (options.retry_max_attempts < 1 || options.retry_max_attempts > 1'000'000) {
    refuse("retry_max_attempts", std::to_string(options.retry_max_attempts), "between 1 and 1000000");
  }
  check_time("lease", options.lease, 100ms, day);
  check_count("completer_batch_size", options.completer_batch_size, 1, 10'000);
  check_time("completer_linger", options.completer_linger, 0ms, 1s);
  check_time("drain_timeout", options.drain_timeout, 0ms, day);
  const auto name_chars = utf8_length(options.node_name);
  if (!name_chars || *name_chars > most_node_chars || options.node_name.find('\0') != std::string::npos) {
    refuse("node_name", "'" + utf8_repaired(options.node_name) + "'", "at most 64 characters of UTF-8");
  }
  if (!options.retry_policy) {
    check_time("retry_base_delay", options.retry_base_delay, 1us, 365 * day);
    check_time("retry_max_delay", options.retry_max_delay, 1us, 365 * day);
    if (options.retry_max_delay < options.retry_base_delay) {
      refuse("retry_max_delay", text_of(options.retry_max_delay),
             "at least retry_base_delay, which is " + text_of(options.retry_base_delay));
    }
    options.retry_policy = std::make_shared<const ExponentialBackoffRetryPolicy>(options.retry_base_delay,
                                                                                 options.retry_max_delay);
  }
  if (options.node_name.empty()) options.node_name = default_node_name();
  if (options.clock == nullptr) options.clock = &Clock::system();
  if (options.metrics == nullptr) options.metrics = &MetricsExporter::none();
  if (!options.log) options.log = [](LogLevel, std::string_view) {};
  // A log that throws must not end a worker.
  options.log = [log = std::move(options.log)](LogLevel level, std::string_view message) {
    try {
      log(level, message);
    } catch (...) {
      log_to_stderr()(LogLevel::error,
                      "postrider: the log callback threw; it was to say: " + std::string(message));
    }
  };
  return options;
}

}  // namespace postrider
