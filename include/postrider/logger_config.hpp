// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "postrider/async_logger.hpp"
#include "postrider/http_event_log_client.hpp"

namespace postrider {

/// Sets one option by the name that configuration files use, with or without "eventlog.async." before it:
/// "queue-capacity", "base-retry-delay-ms", "spillover-path", "max-spillover-size-mb", "fsync" (none,
/// interval, group), "ring" (memory, mapped), "full-policy" (drop-newest, drop-oldest, block) …
/// docs/logger.md lists all. "virtual-threads" is taken and means nothing here. Throws
/// Error(invalid_argument) for a name or a value that is none; bounds are checked by AsyncEventLogger.
void set_logger_option(LoggerOptions& options, std::string_view name, std::string_view value);

/// Applies environment variables: EVENTLOG_ASYNC_QUEUE_CAPACITY for "queue-capacity", and so on. Others that
/// begin so are an error, as a misspelt name would otherwise go unnoticed. `environment` is for tests; null
/// means the process's own.
void apply_environment(LoggerOptions& options, const char* const* environment = nullptr);

/// A logger and its client over HTTP, as a configuration file describes them.
struct EventLogConfig {
  bool enabled = true;  ///< "eventlog.enabled"; false switches the logger off, whatever it says itself
  LoggerOptions logger{};
  HttpClientOptions client{};  ///< "eventlog.base-url", "eventlog.bearer-token" …
};

/// Both: EVENTLOG_ASYNC_… for the logger, EVENTLOG_BASE_URL, EVENTLOG_BEARER_TOKEN and so on for the client.
/// Variables that begin with EVENTLOG_ alone and are none of these are left alone.
void apply_environment(EventLogConfig& config, const char* const* environment = nullptr);

}  // namespace postrider
