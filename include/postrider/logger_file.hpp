// SPDX-License-Identifier: Apache-2.0
// Needs the component postrider::toml.
#pragma once

#include <string>

#include "postrider/logger_config.hpp"

namespace postrider {

/// Reads the tables [eventlog] and [eventlog.async] of a TOML file, with the names of docs/logger.md:
///
///     [eventlog]
///     base-url = "https://eventlog.example.com"
///
///     [eventlog.async]
///     application-id = "shop"        # the Event Log API refuses events without one
///     spillover-path = "./spillover"
///     batch-size = 100
///
/// and then the environment, whose word counts more (see `apply_environment`). Other tables are left alone.
/// What the file does not say keeps its default.
///
/// Throws Error(invalid_argument) with file and line for what is no TOML, for a value that is none, and for
/// an option that there is not, with the nearest one that there is; Error(unavailable) when the file cannot
/// be read. Bounds are checked by AsyncEventLogger and HttpEventLogClient. `environment` is for tests; null
/// means the process's own.
///
///     EventLogConfig config = read_event_log_config("shop.toml");
///     AsyncEventLogger logger{std::make_shared<HttpEventLogClient>(config.client), config.logger};
[[nodiscard]] EventLogConfig read_event_log_config(const std::string& path,
                                                   const char* const* environment = nullptr);

}  // namespace postrider
