// SPDX-License-Identifier: Apache-2.0
#include "bare_writer.hpp"
#include "harness.hpp"

#if defined(POSTRIDER_WITH_POSTGRES)

#include <libpq-fe.h>

#include <array>
#include <chrono>
#include <cstdint>

namespace postrider::bench {

namespace {

// From pg_type.dat; libpq has no header for them.
constexpr Oid text_oid = 25;
constexpr Oid text_array_oid = 1009;
constexpr Oid timestamptz_oid = 1184;
constexpr Oid timestamptz_array_oid = 1185;

void append_int32(std::string& out, std::int32_t value) {
  const auto bits = static_cast<std::uint32_t>(value);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>((bits >> shift) & 0xFF);
}

std::string int64_bytes(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  std::string out;
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>((bits >> shift) & 0xFF);
  return out;
}

/// A one-dimensional array without NULLs in PostgreSQL's binary form.
class BinaryArray {
 public:
  BinaryArray(Oid element, std::size_t size) {
    append_int32(bytes_, 1);
    append_int32(bytes_, 0);
    append_int32(bytes_, static_cast<std::int32_t>(element));
    append_int32(bytes_, static_cast<std::int32_t>(size));
    append_int32(bytes_, 1);
  }
  void add(std::string_view element) {
    append_int32(bytes_, static_cast<std::int32_t>(element.size()));
    bytes_ += element;
  }
  [[nodiscard]] const char* data() const { return bytes_.data(); }
  [[nodiscard]] int size() const { return static_cast<int>(bytes_.size()); }

 private:
  std::string bytes_;
};

/// Microseconds since 2000-01-01, big-endian.
std::string timestamp_now() {
  using namespace std::chrono;
  constexpr sys_days epoch{year{2000} / 1 / 1};
  return int64_bytes(duration_cast<microseconds>(system_clock::now() - epoch).count());
}

class LibpqWriter final : public BareWriter {
 public:
  explicit LibpqWriter(const BareOptions& options) : connection_(PQconnectdb(options.url.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) fail("connect");
    // A statement prepared while the table is empty would otherwise keep its sequential scan.
    simple("SET enable_seqscan = off");
    const std::string columns = " (event_id, event_type, payload, occurred_at, owner, lease_until) ";
    prepare("insert_one",
            "INSERT INTO " + options.table + columns +
                "VALUES ($1, $2, $3::json, $4, $5, clock_timestamp() + interval '30 seconds')",
            std::array{text_oid, text_oid, text_oid, timestamptz_oid, text_oid});
    prepare("insert_many",
            "INSERT INTO " + options.table + columns +
                "SELECT id, type, payload::json, at, $5, clock_timestamp() + interval '30 seconds' "
                "FROM unnest($1, $2, $3, $4) AS rows(id, type, payload, at)",
            std::array{text_array_oid, text_array_oid, text_array_oid, timestamptz_array_oid, text_oid});
    prepare("finish",
            "UPDATE " + options.table +
                " SET status = 1, done_at = clock_timestamp(), owner = NULL, lease_until = NULL WHERE "
                "event_id = ANY ($1)",
            std::array{text_array_oid});
  }
  ~LibpqWriter() override { PQfinish(connection_); }
  LibpqWriter(const LibpqWriter&) = delete;
  LibpqWriter& operator=(const LibpqWriter&) = delete;

  void insert(std::span<const BareRow> rows) override {
    simple("BEGIN");
    if (rows.size() == 1) {
      insert_one(rows.front());
    } else {
      insert_many(rows);
    }
    simple("COMMIT");
  }

  void finish(std::span<const EventId> ids) override {
    BinaryArray array(text_oid, ids.size());
    for (const EventId& id : ids) array.add(id.view());
    const std::array values{array.data()};
    const std::array lengths{array.size()};
    execute("finish", values, lengths);
  }

 private:
  void insert_one(const BareRow& row) {
    const std::string at = timestamp_now();
    const std::array values{row.id.view().data(), bench_type.data(), row.payload.data(), at.data(),
                            bare_owner.data()};
    const std::array lengths{static_cast<int>(row.id.view().size()), static_cast<int>(bench_type.size()),
                             static_cast<int>(row.payload.size()), static_cast<int>(at.size()),
                             static_cast<int>(bare_owner.size())};
    execute("insert_one", values, lengths);
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
    execute("insert_many", values, lengths);
  }

  void prepare(const char* name, const std::string& sql, std::span<const Oid> types) {
    check(PQprepare(connection_, name, sql.c_str(), static_cast<int>(types.size()), types.data()), name);
  }
  void simple(const char* sql) { check(PQexec(connection_, sql), sql); }
  void execute(const char* name, std::span<const char* const> values, std::span<const int> lengths) {
    std::array<int, 8> formats;
    formats.fill(1);
    check(PQexecPrepared(connection_, name, static_cast<int>(values.size()), values.data(), lengths.data(),
                         formats.data(), 1),
          name);
  }
  void check(PGresult* result, const char* what) {
    const ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail(what);
  }
  [[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("bare libpq: ") + what + ": " + PQerrorMessage(connection_));
  }

  PGconn* connection_;
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
