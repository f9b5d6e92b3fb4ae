// SPDX-License-Identifier: Apache-2.0
// The benchmarks of the queue; docs/benchmarks.md says what each line means.
#pragma once

#include <postrider/postrider.hpp>

#include <string>

#include "harness.hpp"

namespace postrider::bench {

/// 100,000 pending events through a handler that does nothing into the log, in one process.
void queue_drain(Report& report, BackendKind kind, const std::string& line);

/// Events in batches of 100 per transaction, PostgreSQL.
void queue_publish(Report& report, const std::string& line);

/// From the database's COMMIT to entering the handler, on an idle queue; prints `line`.same.p99 and
/// `line`.other.p99.
void queue_latency(Report& report, const std::string& line);

/// The drain while an old transaction keeps the rows of half a million finished events from being removed.
void queue_held_xmin(Report& report, const std::string& line);

/// The drain by 1, 2, 4 and 8 processes.
void queue_scaling(Report& report, const std::string& line);
/// What a child process of `queue_scaling` does: work until its input ends. `counter` is the descriptor of
/// the memory it counts in. Returns the exit code.
int queue_worker_child(const std::string& url, const std::string& schema, int counter);

}  // namespace postrider::bench
