// SPDX-License-Identifier: Apache-2.0
#include "bare_queue.hpp"
#include "bare_sqlite_connection.hpp"

namespace postrider::bench {

namespace {

class SqliteQueue final : public BareQueue {
 public:
  explicit SqliteQueue(const BareQueueOptions& options)
      : connection_(options.url),
        begin_(connection_.prepare("BEGIN IMMEDIATE")),
        commit_(connection_.prepare("COMMIT")) {
    const std::string due =
        " FROM " + options.queue +
        " WHERE priority = 0 AND ordering_key IS NULL AND quarantined_at IS NULL AND available_at <= ?1"
        " ORDER BY available_at, id LIMIT " +
        std::to_string(bare_batch);
    log_ = connection_.prepare(
        "INSERT INTO " + options.log +
        " (id, token, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, payload, "
        "payload_bytes, headers, status, priority, attempts, crashes, created_at, occurred_at, "
        "processing_started_at, finalized_at, results) SELECT id, token + 1, event_id, event_type, "
        "aggregate_type, aggregate_id, tenant_id, ordering_key, payload, payload_bytes, headers, 2, "
        "priority, "
        "attempts + 1, crashes, created_at, occurred_at, ?1, ?1, '" +
        std::string(bare_results) + "'" + due);
    remove_ = connection_.prepare("DELETE FROM " + options.queue + " WHERE id IN (SELECT id" + due + ")");
  }

  std::size_t move_batch() override {
    const std::int64_t now = micros_now();
    connection_.step(begin_);
    sqlite3_bind_int64(log_, 1, now);
    connection_.step(log_);
    sqlite3_bind_int64(remove_, 1, now);
    const std::size_t moved = connection_.step(remove_);
    connection_.step(commit_);
    return moved;
  }

 private:
  SqliteConnection connection_;
  sqlite3_stmt* begin_;
  sqlite3_stmt* commit_;
  sqlite3_stmt* log_ = nullptr;
  sqlite3_stmt* remove_ = nullptr;
};

}  // namespace

std::unique_ptr<BareQueue> bare_queue_sqlite(const BareQueueOptions& options) {
  return std::make_unique<SqliteQueue>(options);
}

}  // namespace postrider::bench
