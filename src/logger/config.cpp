// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "core/utf8.hpp"
#include "postrider/error.hpp"
#include "postrider/logger_config.hpp"

namespace postrider {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view wanted) {
  throw Error(
      ErrorCode::invalid_argument,
      "eventlog.async." + std::string(name) + " cannot be '" + utf8_repaired(utf8_prefix(value, 100)) + "'",
      "it must be " + std::string(wanted));
}

template <class T>
T number_in(std::string_view name, std::string_view value) {
  T number{};
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || stop != end) refuse(name, value, "a number");
  return number;
}

template <class T, std::size_t size>
T word_in(std::string_view name, std::string_view value,
          const std::array<std::pair<std::string_view, T>, size>& words) {
  std::string wanted = "one of";
  for (const auto& [word, meaning] : words) {
    if (value == word) return meaning;
    wanted.append(" ").append(word);
  }
  refuse(name, value, wanted);
}

struct Setting {
  std::string_view name;
  void (*set)(LoggerOptions& options, std::string_view name, std::string_view value);
};

template <auto member>
void set_count(LoggerOptions& options, std::string_view name, std::string_view value) {
  options.*member = number_in<std::remove_reference_t<decltype(options.*member)>>(name, value);
}
template <auto member>
void set_ms(LoggerOptions& options, std::string_view name, std::string_view value) {
  constexpr std::int64_t most = std::int64_t{1} << 40U;
  const auto count = number_in<std::int64_t>(name, value);
  if (count < 0 || count > most) refuse(name, value, "milliseconds");
  options.*member = std::chrono::milliseconds{count};
}
template <auto member>
void set_text(LoggerOptions& options, std::string_view, std::string_view value) {
  options.*member = value;
}
template <auto member>
void set_flag(LoggerOptions& options, std::string_view name, std::string_view value) {
  options.*member = word_in<bool, 2>(name, value, {{{"true", true}, {"false", false}}});
}
void set_size_mb(LoggerOptions& options, std::string_view name, std::string_view value) {
  const auto count = number_in<std::uint32_t>(name, value);
  options.max_spillover_bytes = std::uint64_t{count} * 1024 * 1024;
}
void set_fsync(LoggerOptions& options, std::string_view name, std::string_view value) {
  options.fsync = word_in<FsyncMode, 3>(
      name, value,
      {{{"none", FsyncMode::none}, {"interval", FsyncMode::interval}, {"group", FsyncMode::group}}});
}
void set_ring(LoggerOptions& options, std::string_view name, std::string_view value) {
  options.ring =
      word_in<RingMode, 2>(name, value, {{{"memory", RingMode::memory}, {"mapped", RingMode::mapped}}});
}
void set_policy(LoggerOptions& options, std::string_view name, std::string_view value) {
  options.full_policy = word_in<FullPolicy, 3>(name, value,
                                               {{{"drop-newest", FullPolicy::drop_newest},
                                                 {"drop-oldest", FullPolicy::drop_oldest},
                                                 {"block", FullPolicy::block}}});
}
void set_nothing(LoggerOptions&, std::string_view, std::string_view) {}

using O = LoggerOptions;
constexpr std::array settings{
    Setting{"enabled", set_flag<&O::enabled>},
    Setting{"queue-capacity", set_count<&O::queue_capacity>},
    Setting{"max-retries", set_count<&O::max_retries>},
    Setting{"base-retry-delay-ms", set_ms<&O::base_retry_delay>},
    Setting{"max-retry-delay-ms", set_ms<&O::max_retry_delay>},
    Setting{"retry-budget", set_count<&O::retry_budget>},
    Setting{"circuit-breaker-threshold", set_count<&O::circuit_breaker_threshold>},
    Setting{"circuit-breaker-reset-ms", set_ms<&O::circuit_breaker_reset>},
    Setting{"spillover-path", set_text<&O::spillover_path>},
    Setting{"replay-interval-ms", set_ms<&O::replay_interval>},
    Setting{"max-spillover-events", set_count<&O::max_spillover_events>},
    Setting{"max-spillover-size-mb", set_size_mb},
    Setting{"virtual-threads", set_nothing},
    Setting{"batch-size", set_count<&O::batch_size>},
    Setting{"sender-threads", set_count<&O::sender_threads>},
    Setting{"max-batch-wait-ms", set_ms<&O::max_batch_wait>},
    Setting{"fsync", set_fsync},
    Setting{"fsync-interval-ms", set_ms<&O::fsync_interval>},
    Setting{"replay-batch-size", set_count<&O::replay_batch_size>},
    Setting{"replay-rate", set_count<&O::replay_rate>},
    Setting{"ring", set_ring},
    Setting{"ring-bytes", set_count<&O::ring_bytes>},
    Setting{"full-policy", set_policy},
    Setting{"block-timeout-ms", set_ms<&O::block_timeout>},
    Setting{"shutdown-timeout-ms", set_ms<&O::shutdown_timeout>},
    Setting{"handle-signals", set_flag<&O::handle_signals>},
    Setting{"application-id", set_text<&O::application_id>},
    Setting{"originating-system", set_text<&O::originating_system>},
    Setting{"user-id", set_text<&O::user_id>},
};

}  // namespace

void set_logger_option(LoggerOptions& options, std::string_view name, std::string_view value) {
  constexpr std::string_view prefix = "eventlog.async.";
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  const auto* const found = std::find_if(settings.begin(), settings.end(),
                                         [&](const Setting& setting) { return setting.name == name; });
  if (found == settings.end()) {
    throw Error(ErrorCode::invalid_argument, "there is no option eventlog.async." + utf8_repaired(name), {},
                "docs/logger.md lists them");
  }
  found->set(options, found->name, value);
}

void apply_environment(LoggerOptions& options, const char* const* environment) {
  constexpr std::string_view prefix = "EVENTLOG_ASYNC_";
  if (environment == nullptr) environment = ::environ;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::size_t equals = variable.find('=');
    if (!variable.starts_with(prefix) || equals == std::string_view::npos) continue;
    std::string name(variable.substr(prefix.size(), equals - prefix.size()));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
    set_logger_option(options, name, variable.substr(equals + 1));
  }
}

}  // namespace postrider
