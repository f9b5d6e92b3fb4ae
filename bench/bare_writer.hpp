// SPDX-License-Identifier: Apache-2.0
// The yardstick: the same rows moved through the same table by the driver alone, with the best statement
// shapes.
#pragma once

#include <postrider/event_id.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace postrider::bench {

struct BareRow {
  EventId id;
  std::string payload;
};

inline constexpr std::string_view bare_owner = "bench/0/ABCDEFGHIJ";
inline constexpr std::string_view bench_type = "BenchEvent";

/// One connection with prepared statements. Used by one thread at a time.
class BareWriter {
 public:
  virtual ~BareWriter() = default;
  /// BEGIN, one INSERT of all rows (born leased, as ours are), COMMIT.
  virtual void insert(std::span<const BareRow> rows) = 0;
  /// One statement, or one transaction, that makes all of them DONE.
  virtual void finish(std::span<const EventId> ids) = 0;
};

/// `insert_batch` and `finish_batch` are the most that one call will be given.
struct BareOptions {
  std::string url;
  std::string table;
  std::size_t insert_batch = 100;
  std::size_t finish_batch = 512;
};

[[nodiscard]] std::unique_ptr<BareWriter> bare_libpq(const BareOptions& options);
[[nodiscard]] std::unique_ptr<BareWriter> bare_sqlite(const BareOptions& options);
[[nodiscard]] std::unique_ptr<BareWriter> bare_libmariadb(const BareOptions& options);

}  // namespace postrider::bench
