// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness.hpp"

namespace postrider::bench {

/// Batches over HTTP into the Event Log API on SQLite, against bare inserts of the same rows in the same
/// batches.
void eventlog_api(Report& report, const std::string& line);

}  // namespace postrider::bench
