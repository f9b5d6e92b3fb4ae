// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "postrider/async_logger.hpp"

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

}  // namespace postrider
