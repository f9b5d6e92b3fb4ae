// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/postgres/connection.hpp"
#include "postrider/identifier.hpp"

namespace postrider::postgres {

/// The statements of the event store. Their plans are proved in stream_plan_test.cpp.
struct StreamSql {
  /// Appends of our own wait at most this long for the store's lock.
  explicit StreamSql(const Identifier& schema, Duration lock_timeout = std::chrono::seconds{10});

  /// The planner's settings (see settings_statement) and the store's lock, until the transaction ends. A
  /// statement of its own: what comes after it sees whatever was committed before the lock was ours.
  Statement lock;
  /// The same unless the transaction has one snapshot for all its statements. Its only text is the isolation
  /// level.
  Statement lock_if_read_committed;
  Statement head;
  /// For each (hash, after, until): number, position, type and tags of the newest that is there.
  Statement probe_one;
  /// For each group of several hashes (first and last place in the list of hashes).
  Statement probe_groups;
  Statement insert_events;
  Statement insert_tags;
  /// The columns of `read_row`; one row of NULLs behind the head when there are none.
  Statement read_all;
  Statement read_all_backwards;
  Statement read_groups;
  Statement read_groups_backwards;
  Statement read_at;
};

/// Columns of the statements that read.
namespace stream_column {
enum : int {
  head,
  position,
  event_id,
  type,
  tags,
  data,
  data_bytes,
  metadata,
  correlation_id,
  causation_id,
  occurred_at,
  stored_at,
  size
};
}  // namespace stream_column

}  // namespace postrider::postgres
