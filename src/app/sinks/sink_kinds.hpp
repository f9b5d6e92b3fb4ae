// SPDX-License-Identifier: Apache-2.0
// The sinks that a configuration can name, and how each is read from its table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/daemon_config.hpp"

namespace postrider::sinks {

/// Of [sinks.<name>]. Throws Error(invalid_argument) with the line; also for a kind that this build lacks.
[[nodiscard]] config::SinkConfig read_sink(config::Source& source, const std::string& name);

/// The kinds of this build: "file", and those whose components it has.
[[nodiscard]] std::vector<std::string_view> kinds();

/// Publishers of the relay that need no table: LogPublisher, StatisticsPublisher.
[[nodiscard]] bool is_built_in_publisher(std::string_view name) noexcept;

[[nodiscard]] std::string nearest_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace postrider::sinks
