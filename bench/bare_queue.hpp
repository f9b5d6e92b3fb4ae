// SPDX-License-Identifier: Apache-2.0
// The limit of the queue: the same tables, the driver alone, and no claim.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "bare_writer.hpp"

namespace postrider::bench {

struct BareQueueOptions {
  std::string url;
  std::string queue;
  std::string log;
  std::string numbers;  ///< the sequence of the log's numbers; PostgreSQL only
};

/// As many events as the manager settles at once by default.
inline constexpr std::size_t bare_batch = 500;
/// What a handler that succeeded leaves in the log.
inline constexpr const char* bare_results = R"([{"handler":"bench","result":0}])";

/// One connection with prepared statements. Used by one thread at a time.
class BareQueue {
 public:
  virtual ~BareQueue() = default;
  /// Moves the next `bare_batch` due events to the log in one transaction. Returns how many there were.
  virtual std::size_t move_batch() = 0;
};

[[nodiscard]] std::unique_ptr<BareQueue> bare_queue_libpq(const BareQueueOptions& options);
[[nodiscard]] std::unique_ptr<BareQueue> bare_queue_sqlite(const BareQueueOptions& options);
[[nodiscard]] std::unique_ptr<BareQueue> bare_queue_libmariadb(const BareQueueOptions& options);

/// BEGIN, one INSERT of all rows by `unnest`, COMMIT.
class BarePublisher {
 public:
  virtual ~BarePublisher() = default;
  virtual void publish(std::span<const BareRow> rows) = 0;
};
[[nodiscard]] std::unique_ptr<BarePublisher> bare_publisher_libpq(const BareQueueOptions& options);

}  // namespace postrider::bench
