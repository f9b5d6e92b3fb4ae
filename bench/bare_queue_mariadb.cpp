// SPDX-License-Identifier: Apache-2.0
#include "bare_queue.hpp"
#include "harness.hpp"

#if defined(POSTRIDER_WITH_MARIADB)

#include "bare_mariadb_connection.hpp"

namespace postrider::bench {

namespace {

class MariadbQueue final : public BareQueue {
 public:
  explicit MariadbQueue(const BareQueueOptions& options) : connection_(options.url) {
    const std::string due =
        " WHERE due_priority = 0 AND available_at <= UTC_TIMESTAMP(6)"
        " ORDER BY available_at, id LIMIT " +
        std::to_string(bare_batch);
    // The number is the id: there is nobody else whose commits it would have to follow.
    log_ = connection_.prepare(
        "INSERT INTO " + options.log +
        " (id, seq, token, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, "
        "payload, payload_bytes, headers, status, priority, attempts, crashes, created_at, occurred_at, "
        "processing_started_at, finalized_at, results) SELECT id, id, token + 1, event_id, event_type, "
        "aggregate_type, aggregate_id, tenant_id, ordering_key, payload, payload_bytes, headers, 2, "
        "priority, "
        "attempts + 1, crashes, created_at, occurred_at, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), '" +
        std::string(bare_results) + "' FROM " + options.queue + " FORCE INDEX (event_queue_due)" + due);
    remove_ = connection_.prepare("DELETE FROM " + options.queue + due);
  }
  ~MariadbQueue() override {
    mysql_stmt_close(log_);
    mysql_stmt_close(remove_);
  }
  MariadbQueue(const MariadbQueue&) = delete;
  MariadbQueue& operator=(const MariadbQueue&) = delete;

  std::size_t move_batch() override {
    connection_.simple("BEGIN");
    MariadbConnection::execute(log_);
    const std::size_t moved = MariadbConnection::execute(remove_);
    connection_.simple("COMMIT");
    return moved;
  }

 private:
  MariadbConnection connection_;
  MYSQL_STMT* log_;
  MYSQL_STMT* remove_;
};

}  // namespace

std::unique_ptr<BareQueue> bare_queue_libmariadb(const BareQueueOptions& options) {
  return std::make_unique<MariadbQueue>(options);
}

}  // namespace postrider::bench

#else

std::unique_ptr<postrider::bench::BareQueue> postrider::bench::bare_queue_libmariadb(
    const BareQueueOptions&) {
  throw Unavailable("MariaDB is not compiled in");
}

#endif
