// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <type_traits>
#include <vector>

#include "core/nearest.hpp"
#include "core/utf8.hpp"
#include "core/without_prefix.hpp"
#include "logger/options.hpp"
#include "logger/settings.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

using logger::Bounds;
using logger::Setting;
namespace bounds = logger::bounds;

constexpr Bounds<Duration> client_times{std::chrono::milliseconds{1}, bounds::day};

/// The name comes with the type, so that messages have it and the tables have it once.
template <std::size_t size>
struct Name {
  constexpr Name(const char (&name)[size]) { std::copy_n(name, size, text); }  // NOLINT: meant to convert
  char text[size]{};
};

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view wanted) {
  throw Error(ErrorCode::invalid_argument,
              "eventlog." + std::string(name) + " cannot be '" + utf8_repaired(utf8_prefix(value, 100)) + "'",
              "it must be " + std::string(wanted));
}

template <class T>
T number_in(std::string_view name, std::string_view value, T least, T most) {
  T number{};
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  // What is no number at all does not compare, either.
  if (error != std::errc{} || stop != end || !(number >= least && number <= most)) {
    constexpr bool whole = std::is_integral_v<T>;
    const auto text = [](T bound) { return std::to_string(static_cast<std::int64_t>(bound)); };
    refuse(name, value,
           (whole ? "a whole number from " : "a number from ") + text(least) + " to " + text(most));
  }
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

bool flag_in(std::string_view name, std::string_view value) {
  return word_in<bool, 2>(name, value, {{{"true", true}, {"false", false}}});
}

Duration milliseconds_in(std::string_view name, std::string_view value, const Bounds<Duration>& range) {
  using Milliseconds = std::chrono::milliseconds;
  return Milliseconds{number_in<std::int64_t>(name, value,
                                              std::chrono::ceil<Milliseconds>(range.least).count(),
                                              std::chrono::floor<Milliseconds>(range.most).count())};
}

using O = LoggerOptions;
using C = EventLogConfig;

// Of LoggerOptions.
template <Name name, auto member, const auto& range>
constexpr Setting<O> count{name.text, false, [](O& options, std::string_view value) {
                             using T = std::remove_reference_t<decltype(options.*member)>;
                             options.*member = number_in<T>(std::string("async.") + name.text, value,
                                                            range.least, range.most);
                           }};
template <Name name, auto member, const auto& range>
constexpr Setting<O> time{name.text, false, [](O& options, std::string_view value) {
                            options.*member =
                                milliseconds_in(std::string("async.") + name.text, value, range);
                          }};
template <Name name, auto member>
constexpr Setting<O> text{name.text, true,
                          [](O& options, std::string_view value) { options.*member = value; }};
template <Name name, auto member>
constexpr Setting<O> flag{name.text, false, [](O& options, std::string_view value) {
                            options.*member = flag_in(std::string("async.") + name.text, value);
                          }};

void set_size_mb(O& options, std::string_view value) {
  constexpr std::uint64_t mebibyte = 1024 * 1024;
  const auto megabytes = number_in<std::uint64_t>("async.max-spillover-size-mb", value, 1,
                                                  bounds::max_spillover_bytes.most / mebibyte);
  options.max_spillover_bytes = megabytes * mebibyte;
}
void set_fsync(O& options, std::string_view value) {
  options.fsync = word_in<FsyncMode, 3>(
      "async.fsync", value,
      {{{"none", FsyncMode::none}, {"interval", FsyncMode::interval}, {"group", FsyncMode::group}}});
}
void set_ring(O& options, std::string_view value) {
  options.ring = word_in<RingMode, 2>("async.ring", value,
                                      {{{"memory", RingMode::memory}, {"mapped", RingMode::mapped}}});
}
void set_policy(O& options, std::string_view value) {
  options.full_policy = word_in<FullPolicy, 3>("async.full-policy", value,
                                               {{{"drop-newest", FullPolicy::drop_newest},
                                                 {"drop-oldest", FullPolicy::drop_oldest},
                                                 {"block", FullPolicy::block}}});
}
void set_nothing(O&, std::string_view) {}

constexpr std::array async_table{
    flag<"enabled", &O::enabled>,
    count<"queue-capacity", &O::queue_capacity, bounds::queue_capacity>,
    count<"max-retries", &O::max_retries, bounds::max_retries>,
    time<"base-retry-delay-ms", &O::base_retry_delay, bounds::base_retry_delay>,
    time<"max-retry-delay-ms", &O::max_retry_delay, bounds::max_retry_delay>,
    count<"retry-budget", &O::retry_budget, bounds::retry_budget>,
    count<"circuit-breaker-threshold", &O::circuit_breaker_threshold, bounds::circuit_breaker_threshold>,
    time<"circuit-breaker-reset-ms", &O::circuit_breaker_reset, bounds::circuit_breaker_reset>,
    text<"spillover-path", &O::spillover_path>,
    time<"replay-interval-ms", &O::replay_interval, bounds::replay_interval>,
    count<"max-spillover-events", &O::max_spillover_events, bounds::max_spillover_events>,
    Setting<O>{"max-spillover-size-mb", false, set_size_mb},
    Setting<O>{"virtual-threads", false, set_nothing},
    count<"batch-size", &O::batch_size, bounds::batch_size>,
    count<"sender-threads", &O::sender_threads, bounds::sender_threads>,
    time<"max-batch-wait-ms", &O::max_batch_wait, bounds::max_batch_wait>,
    Setting<O>{"fsync", false, set_fsync},
    time<"fsync-interval-ms", &O::fsync_interval, bounds::fsync_interval>,
    count<"replay-batch-size", &O::replay_batch_size, bounds::replay_batch_size>,
    count<"replay-rate", &O::replay_rate, bounds::replay_rate>,
    Setting<O>{"ring", false, set_ring},
    count<"ring-bytes", &O::ring_bytes, bounds::ring_bytes>,
    Setting<O>{"full-policy", false, set_policy},
    time<"block-timeout-ms", &O::block_timeout, bounds::block_timeout>,
    time<"shutdown-timeout-ms", &O::shutdown_timeout, bounds::shutdown_timeout>,
    flag<"handle-signals", &O::handle_signals>,
    text<"application-id", &O::application_id>,
    text<"originating-system", &O::originating_system>,
    text<"user-id", &O::user_id>,
};

// Of the client.
template <Name name, auto member>
constexpr Setting<C> client_text{name.text, true,
                                 [](C& config, std::string_view value) { config.client.*member = value; }};
template <Name name, auto member>
constexpr Setting<C> client_time{name.text, false, [](C& config, std::string_view value) {
                                   config.client.*member = milliseconds_in(name.text, value, client_times);
                                 }};
template <Name name, auto member>
constexpr Setting<C> oauth_text{
    name.text, true, [](C& config, std::string_view value) { config.client.oauth.*member = value; }};

constexpr std::array event_log_table{
    Setting<C>{"enabled", false,
               [](C& config, std::string_view value) { config.enabled = flag_in("enabled", value); }},
    client_text<"base-url", &HttpClientOptions::base_url>,
    client_text<"bearer-token", &HttpClientOptions::bearer_token>,
    client_text<"ca-file", &HttpClientOptions::ca_file>,
    client_time<"connect-timeout-ms", &HttpClientOptions::connect_timeout>,
    client_time<"request-timeout-ms", &HttpClientOptions::request_timeout>,
    Setting<C>{"gzip", false,
               [](C& config, std::string_view value) { config.client.gzip = flag_in("gzip", value); }},
    oauth_text<"oauth-token-url", &OAuthOptions::token_url>,
    oauth_text<"oauth-client-id", &OAuthOptions::client_id>,
    oauth_text<"oauth-client-secret", &OAuthOptions::client_secret>,
    oauth_text<"oauth-scope", &OAuthOptions::scope>,
};

template <class Options>
const Setting<Options>* find(std::span<const Setting<Options>> table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& setting) { return setting.name == name; });
  return found == table.end() ? nullptr : &*found;
}

/// Calls `take(name, value)` for each variable that begins with `prefix`: "batch-size" for X_BATCH_SIZE.
template <class Take>
void for_each_variable(const char* const* environment, std::string_view prefix, const Take& take) {
  if (environment == nullptr) environment = ::environ;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::size_t equals = variable.find('=');
    if (!variable.starts_with(prefix) || equals == std::string_view::npos) continue;
    std::string name(variable.substr(prefix.size(), equals - prefix.size()));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
    try {
      take(name, variable.substr(equals + 1));
    } catch (const Error& error) {
      throw Error(error.code(),
                  "the environment variable " + utf8_repaired(variable.substr(0, equals)) + " is refused",
                  without_prefix(error.what()));
    }
  }
}

constexpr std::string_view async_variables = "EVENTLOG_ASYNC_";

}  // namespace

namespace logger {

std::span<const Setting<LoggerOptions>> async_settings() noexcept {
  return async_table;
}
std::span<const Setting<EventLogConfig>> event_log_settings() noexcept {
  return event_log_table;
}

}  // namespace logger

void set_logger_option(LoggerOptions& options, std::string_view name, std::string_view value) {
  constexpr std::string_view prefix = "eventlog.async.";
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  const auto* const found = find(logger::async_settings(), name);
  if (found == nullptr) {
    std::vector<std::string_view> known;
    known.reserve(async_table.size());
    for (const auto& setting : async_table) known.push_back(setting.name);
    const std::string_view nearest = nearest_of(name, known);
    throw Error(ErrorCode::invalid_argument, "there is no option eventlog.async." + utf8_repaired(name), {},
                nearest.empty() ? "docs/logger.md lists them" : "did you mean " + std::string(nearest) + "?");
  }
  found->set(options, value);
}

void apply_environment(LoggerOptions& options, const char* const* environment) {
  for_each_variable(environment, async_variables, [&](const std::string& name, std::string_view value) {
    set_logger_option(options, name, value);
  });
}

void apply_environment(EventLogConfig& config, const char* const* environment) {
  apply_environment(config.logger, environment);
  for_each_variable(environment, "EVENTLOG_", [&](const std::string& name, std::string_view value) {
    // The prefix alone is not ours: others are left alone.
    if (const auto* const found = find(logger::event_log_settings(), name)) found->set(config, value);
  });
}

}  // namespace postrider
