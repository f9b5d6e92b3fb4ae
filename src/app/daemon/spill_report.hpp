// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "postrider/clock.hpp"

namespace postrider::daemon {

/// What is in a logger's folder. Reads only, and takes no lock: the logger may be running, and then figures
/// may be a moment old. Throws Error(invalid_argument) when there is no such folder. Reads all of its files:
/// some hundred megabytes a second.
[[nodiscard]] boost::json::object spill_report(const std::string& folder, TimePoint now);

}  // namespace postrider::daemon
