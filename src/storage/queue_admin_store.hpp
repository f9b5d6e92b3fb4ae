// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "postrider/queue_admin.hpp"

namespace postrider {

/// What can be done to rows of the queue; see QueueAdmin.
enum class QueueAction : std::uint8_t { requeue, release, cancel };

/// One transaction's part of a verb that walks through a table.
struct AdminBatch {
  std::int64_t changed = 0;
  std::int64_t walked_to = 0;  ///< id (or seq) of the last row that was looked at
  bool more = false;           ///< false: the end was reached
};

/// Which entries of the log are to be deleted.
struct LogPurge {
  Duration age{};  ///< finished so long ago, or longer
  bool keep_unread = true;
  QueueFilter filter{};
};
struct LogPurgeBatch {
  AdminBatch walk{};
  bool held_back = false;  ///< what comes next is old enough, but a projection has yet to read it
};

/// What operators do with event_queue and event_log. Thread-safe.
class QueueAdminStore {
 public:
  virtual ~QueueAdminStore() = default;

  virtual QueueCounts counts(const QueueFilter& filter) = 0;
  virtual LogCounts log_counts(const QueueFilter& log_filter) = 0;
  virtual std::map<std::int32_t, std::int64_t> attempts(const QueueFilter& filter) = 0;
  /// Order: id, above `after`.
  virtual std::vector<QueueRecord> list(const QueueFilter& filter, std::size_t limit, QueueId after) = 0;

  /// One transaction: at most `limit` rows with a higher id than `after`. Rows that are locked are passed
  /// over. Log entries made by `cancel` have no sequence number yet where numbers need a lock: call
  /// QueueStore::sequence_log afterwards.
  virtual AdminBatch apply(QueueAction action, const QueueFilter& filter, QueueId after, std::size_t limit,
                           std::string_view reason) = 0;
  /// How many rows `apply` would find.
  virtual std::int64_t count(QueueAction action, const QueueFilter& filter) = 0;

  /// One transaction: publishes at most `limit` entries of the log in (after, until] again. With `limit` 0
  /// nothing is published and `changed` is how many there are.
  virtual AdminBatch replay(const QueueFilter& filter, LogSeq after, LogSeq until, std::size_t limit) = 0;
  /// One transaction: deletes at most `limit` entries behind `after` that match the filter, lowest seq first,
  /// up to the first that is not old enough. With `keep_unread` none that a projection has yet to read. With
  /// `limit` 0 nothing is deleted and `changed` is how many there are.
  virtual LogPurgeBatch purge_log(const LogPurge& what, LogSeq after, std::size_t limit) = 0;
};

}  // namespace postrider
