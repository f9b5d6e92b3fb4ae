// SPDX-License-Identifier: Apache-2.0
// The benchmarks of the event store; docs/benchmarks.md says what each line means.
#pragma once

#include <postrider/postrider.hpp>

#include <string>

#include "harness.hpp"

namespace postrider::bench {

/// Conditional appends of one event by 1, 16 and 256 callers in one process, half a million events present;
/// prints `line`.c1, .c16 and .c256.
void stream_append_if(Report& report, BackendKind kind, const std::string& line);

/// 100 events per conditional append, one caller, PostgreSQL.
void stream_append_batch(Report& report, const std::string& line);

/// Conditional appends among two million events, half a million of which have the tag of the condition, which
/// looks at all of them; against ten thousand events. PostgreSQL.
void stream_flat(Report& report, const std::string& line);

}  // namespace postrider::bench
