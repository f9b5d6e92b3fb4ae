// SPDX-License-Identifier: Apache-2.0
// The limit of the event store: the same tables and the same statements, and the driver alone.
#pragma once

#include <postrider/postrider.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace postrider::bench {

struct BareStreamRow {
  EventId id{};
  std::string type{};
  std::string tags{};
  std::string data{};
  std::vector<std::int64_t> hashes{};
};

/// One connection with prepared statements. Used by one thread at a time.
class BareAppender {
 public:
  virtual ~BareAppender() = default;
  /// In one transaction: the lock, the head, whether there is an entry (hash, > after), the rows, their
  /// hashes. Returns the last position; throws on a conflict.
  virtual std::int64_t append(std::span<const BareStreamRow> rows, std::int64_t hash, std::int64_t after) = 0;
};

/// `events` and `tags` are the tables, ready to stand in SQL. In pipeline mode, two round trips, as ours.
[[nodiscard]] std::unique_ptr<BareAppender> bare_appender_libpq(const std::string& url,
                                                                const std::string& events,
                                                                const std::string& tags);
[[nodiscard]] std::unique_ptr<BareAppender> bare_appender_sqlite(const std::string& file,
                                                                 const std::string& events,
                                                                 const std::string& tags);

}  // namespace postrider::bench
