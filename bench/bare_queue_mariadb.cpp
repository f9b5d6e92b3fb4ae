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
    // By the primary key, from where it stopped: a scan of the due index would meet again and again what the
    // purge has not reached yet, and be half as fast.
    // The number is the id: there is nobody else whose commits it would have to follow.
    log_ = connection_.prepare(
        "INSERT INTO " + options.log +
        " (id, seq, token, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, "
        "payload, payload_bytes, headers, status, priority, attempts, crashes, created_at, occurred_at, "
        "processing_started_at, finalized_at, results) SELECT id, id, token + 1, event_id, event_type, "
        "aggregate_type, aggregate_id, tenant_id, ordering_key, payload, payload_bytes, headers, 2, "
        "priority, "
        "attempts + 1, crashes, created_at, occurred_at, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), '" +
        std::string(bare_results) + "' FROM " + options.queue +
        " WHERE id > ? AND available_at <= UTC_TIMESTAMP(6) ORDER BY id LIMIT " + std::to_string(bare_batch));
    remove_ = connection_.prepare("DELETE FROM " + options.queue + " WHERE id > ? AND id <= ?");
    last_ = connection_.prepare("SELECT coalesce(max(id), 0) FROM " + options.log);
  }
  ~MariadbQueue() override {
    for (MYSQL_STMT* statement : {log_, remove_, last_}) mysql_stmt_close(statement);
  }
  MariadbQueue(const MariadbQueue&) = delete;
  MariadbQueue& operator=(const MariadbQueue&) = delete;

  std::size_t move_batch() override {
    connection_.simple("BEGIN");
    long long places[2] = {last_place(), 0};
    MYSQL_BIND binds[2] = {bound(places[0]), bound(places[1])};
    MariadbConnection::execute(log_, binds);
    places[1] = last_place();
    const std::size_t moved = MariadbConnection::execute(remove_, binds);
    connection_.simple("COMMIT");
    return moved;
  }

 private:
  static MYSQL_BIND bound(long long& number) {
    MYSQL_BIND bind{};
    bind.buffer_type = MYSQL_TYPE_LONGLONG;
    bind.buffer = &number;
    return bind;
  }
  long long last_place() {
    MariadbConnection::execute(last_);
    long long place = 0;
    MYSQL_BIND bind = bound(place);
    if (mysql_stmt_bind_result(last_, &bind) != 0 || mysql_stmt_fetch(last_) != 0) {
      throw std::runtime_error(std::string("bare libmariadb: ") + mysql_stmt_error(last_));
    }
    mysql_stmt_free_result(last_);
    return place;
  }

  MariadbConnection connection_;
  MYSQL_STMT* log_;
  MYSQL_STMT* remove_;
  MYSQL_STMT* last_;
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
