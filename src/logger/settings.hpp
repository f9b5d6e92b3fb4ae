// SPDX-License-Identifier: Apache-2.0
// Options by name: what files and environment variables are read with.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "postrider/logger_config.hpp"

namespace postrider::logger {

/// One option of `Options` by its name.
template <class Options>
struct Setting {
  std::string_view name;
  bool is_text;  ///< takes any text: a file must not give it a number
  /// Throws Error(invalid_argument) for a value that is none.
  void (*set)(Options& options, std::string_view value);
};

/// Of [eventlog.async].
[[nodiscard]] std::span<const Setting<LoggerOptions>> async_settings() noexcept;
/// Of [eventlog].
[[nodiscard]] std::span<const Setting<EventLogConfig>> event_log_settings() noexcept;

}  // namespace postrider::logger
