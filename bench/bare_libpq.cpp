// SPDX-License-Identifier: Apache-2.0
#include "bare_writer.hpp"
#include "harness.hpp"

#if defined(POSTRIDER_WITH_POSTGRES)

#include <array>

#include "bare_libpq_connection.hpp"

namespace postrider::bench {

namespace {

class LibpqWriter final : public BareWriter {
 public:
  explicit LibpqWriter(const BareOptions& options) : connection_(options.url) {
    const std::string columns = " (event_id, event_type, payload, occurred_at, owner, lease_until) ";
    connection_.prepare("insert_one",
                        "INSERT INTO " + options.table + columns +
                            "VALUES ($1, $2, $3::json, $4, $5, clock_timestamp() + interval '30 seconds')",
                        std::array{text_oid, text_oid, text_oid, timestamptz_oid, text_oid});
    connection_.prepare(
        "insert_many",
        "INSERT INTO " + options.table + columns +
            "SELECT id, type, payload::json, at, $5, clock_timestamp() + interval '30 seconds' "
            "FROM unnest($1, $2, $3, $4) AS rows(id, type, payload, at)",
        std::array{text_array_oid, text_array_oid, text_array_oid, timestamptz_array_oid, text_oid});
    connection_.prepare(
        "finish",
        "UPDATE " + options.table +
            " SET status = 1, done_at = clock_timestamp(), owner = NULL, lease_until = NULL WHERE "
            "event_id = ANY ($1)",
        std::array{text_array_oid});
  }

  void insert(std::span<const BareRow> rows) override {
    connection_.simple("BEGIN");
    if (rows.size() == 1) {
      insert_one(rows.front());
    } else {
      insert_many(rows);
    }
    connection_.simple("COMMIT");
  }

  void finish(std::span<const EventId> ids) override {
    BinaryArray array(text_oid, ids.size());
    for (const EventId& id : ids) array.add(id.view());
    const std::array values{array.data()};
    const std::array lengths{array.size()};
    connection_.execute("finish", values, lengths);
  }

 private:
  void insert_one(const BareRow& row) {
    const std::string at = timestamp_now();
    const std::array values{row.id.view().data(), bench_type.data(), row.payload.data(), at.data(),
                            bare_owner.data()};
    const std::array lengths{static_cast<int>(row.id.view().size()), static_cast<int>(bench_type.size()),
                             static_cast<int>(row.payload.size()), static_cast<int>(at.size()),
                             static_cast<int>(bare_owner.size())};
    connection_.execute("insert_one", values, lengths);
  }

  void insert_many(std::span<const BareRow> rows) {
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
    const std::array values{ids.data(), types.data(), payloads.data(), times.data(), bare_owner.data()};
    const std::array lengths{ids.size(), types.size(), payloads.size(), times.size(),
                             static_cast<int>(bare_owner.size())};
    connection_.execute("insert_many", values, lengths);
  }

  LibpqConnection connection_;
};

}  // namespace

std::unique_ptr<BareWriter> bare_libpq(const BareOptions& options) {
  return std::make_unique<LibpqWriter>(options);
}

}  // namespace postrider::bench

#else

std::unique_ptr<postrider::bench::BareWriter> postrider::bench::bare_libpq(const BareOptions&) {
  throw Unavailable("PostgreSQL is not compiled in");
}

#endif
