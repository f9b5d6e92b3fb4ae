// SPDX-License-Identifier: Apache-2.0
#include "bare_queue.hpp"
#include "harness.hpp"

#if defined(POSTRIDER_WITH_POSTGRES)

#include "bare_libpq_connection.hpp"

namespace postrider::bench {

namespace {

class LibpqQueue final : public BareQueue {
 public:
  explicit LibpqQueue(const BareQueueOptions& options) : connection_(options.url) {
    connection_.prepare(
        "move",
        "WITH gone AS (DELETE FROM " + options.queue + " WHERE ctid = ANY (ARRAY(SELECT ctid FROM " +
            options.queue +
            " WHERE priority = 0 AND ordering_key IS NULL AND quarantined_at IS NULL AND available_at <= "
            "now()"
            " ORDER BY available_at, id LIMIT " +
            std::to_string(bare_batch) + ")) RETURNING *) INSERT INTO " + options.log +
            " (id, seq, token, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, "
            "payload, payload_bytes, headers, status, priority, attempts, crashes, created_at, occurred_at, "
            "processing_started_at, finalized_at, results) SELECT id, nextval('" +
            options.numbers +
            "'), token + 1, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, "
            "payload, payload_bytes, headers, 2, priority, attempts + 1, crashes, created_at, occurred_at, "
            "now(), now(), '" +
            bare_results + "' FROM gone",
        {});
  }

  std::size_t move_batch() override { return connection_.execute("move", {}, {}); }

 private:
  LibpqConnection connection_;
};

class LibpqPublisher final : public BarePublisher {
 public:
  explicit LibpqPublisher(const BareQueueOptions& options) : connection_(options.url) {
    connection_.prepare(
        "publish",
        "INSERT INTO " + options.queue +
            " (event_id, event_type, payload, occurred_at) SELECT id, type, payload::json, at FROM "
            "unnest($1, $2, $3, $4) AS rows(id, type, payload, at)",
        std::array{text_array_oid, text_array_oid, text_array_oid, timestamptz_array_oid});
  }

  void publish(std::span<const BareRow> rows) override {
    BinaryArray ids(text_oid, rows.size());
    BinaryArray types(text_oid, rows.size());
    BinaryArray payloads(text_oid, rows.size());
    BinaryArray times(timestamptz_oid, rows.size());
    const std::string at = timestamp_now();
    for (const BareRow& row : rows) {
      ids.add(row.id.view());
      types.add(bench_type);
      payloads.add(row.payload);
      times.add(at);
    }
    connection_.simple("BEGIN");
    const std::array values{ids.data(), types.data(), payloads.data(), times.data()};
    const std::array lengths{ids.size(), types.size(), payloads.size(), times.size()};
    connection_.execute("publish", values, lengths);
    connection_.simple("COMMIT");
  }

 private:
  LibpqConnection connection_;
};

}  // namespace

std::unique_ptr<BareQueue> bare_queue_libpq(const BareQueueOptions& options) {
  return std::make_unique<LibpqQueue>(options);
}

std::unique_ptr<BarePublisher> bare_publisher_libpq(const BareQueueOptions& options) {
  return std::make_unique<LibpqPublisher>(options);
}

}  // namespace postrider::bench

#else

std::unique_ptr<postrider::bench::BareQueue> postrider::bench::bare_queue_libpq(const BareQueueOptions&) {
  throw Unavailable("PostgreSQL is not compiled in");
}

std::unique_ptr<postrider::bench::BarePublisher> postrider::bench::bare_publisher_libpq(
    const BareQueueOptions&) {
  throw Unavailable("PostgreSQL is not compiled in");
}

#endif
