// SPDX-License-Identifier: Apache-2.0
// The benchmarks of `postrider serve`; docs/benchmarks.md says what each line means.
#pragma once

#include <postrider/postrider.hpp>

#include <string>

#include "harness.hpp"

namespace postrider::bench {

/// The status of a publisher over HTTP, 2,000 requests a second, beside a relay under load; prints `line`.p50
/// and `line`.p99.
void api_read(Report& report, BackendKind kind, const std::string& line);
/// A daemon with nothing to do; prints `line`.cpu and `line`.memory.
void serve_idle(Report& report, const std::string& line);
/// From the start of the process to its being ready, on SQLite.
void serve_start(Report& report, const std::string& line);
/// The program, stripped.
void serve_size(Report& report, const std::string& line);

}  // namespace postrider::bench
