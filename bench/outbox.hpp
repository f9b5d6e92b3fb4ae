// SPDX-License-Identifier: Apache-2.0
// The benchmarks of the outbox; docs/benchmarks.md says what each line means.
#pragma once

#include <postrider/postrider.hpp>

#include <string>

#include "harness.hpp"

namespace postrider::bench {

struct CycleSetting {
  Target target{};
  /// One thread publishes without a pause: such a user gives the hot queue room for a tenth of a second and
  /// more. With the default of OutboxOptions a part of the events goes the cold way.
  std::size_t hot_queue_capacity = 20'000;
};

/// Publish in batches of 100 per transaction, a listener that does nothing, DONE.
void outbox_cycle(Report& report, BackendKind kind, const std::string& line, CycleSetting setting);

/// One event per transaction from `threads` threads, PostgreSQL. With `delivered` the outbox runs while they
/// publish, and the bare side finishes its rows as well.
void outbox_publish1(Report& report, int threads, bool delivered, const std::string& line);

/// From the database's COMMIT to entering the listener; prints `line`.p50 and `line`.p99.
void outbox_hot_latency(Report& report, BackendKind kind, const std::string& line);

/// The poller alone: how its rate depends on how much is pending.
void outbox_backlog(Report& report, BackendKind kind, const std::string& line);

/// A backlog of a few keys whose listener fails once in 14 times: each failure stops the line behind it.
void outbox_ordered_retries(Report& report, BackendKind kind, const std::string& line);

/// The largest resident set of a process that drains a million rows.
void outbox_memory(Report& report, const std::string& line);
/// What the child process of `outbox_memory` does: drain the file, then print the peak. Returns the exit
/// code.
int outbox_memory_child(const std::string& url, const std::string& schema, std::size_t rows);

}  // namespace postrider::bench
