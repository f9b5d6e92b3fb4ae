// SPDX-License-Identifier: Apache-2.0
#include "bare_stream.hpp"
#include "harness.hpp"

#if defined(POSTRIDER_WITH_POSTGRES)

#include "bare_libpq_connection.hpp"

namespace postrider::bench {

namespace {

constexpr Oid int8_oid = 20;
constexpr Oid int4_oid = 23;
constexpr Oid int8_array_oid = 1016;
constexpr Oid int4_array_oid = 1007;

class LibpqAppender final : public BareAppender {
 public:
  LibpqAppender(const std::string& url, const std::string& events, const std::string& tags)
      : connection_(PQconnectdb(url.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) fail("connect");
    for (const char* setting : {"enable_seqscan = off", "enable_bitmapscan = off", "jit = off",
                                "plan_cache_mode = force_generic_plan"}) {
      PQclear(PQexec(connection_, (std::string("SET ") + setting).c_str()));
    }
    prepare("lock", "SELECT pg_advisory_xact_lock(hashtextextended('bench events', 0))", {});
    prepare("head", "SELECT position FROM " + events + " ORDER BY position DESC LIMIT 1", {});
    prepare(
        "probe",
        "SELECT position FROM " + tags + " WHERE hash = $1 AND position > $2 ORDER BY position DESC LIMIT 1",
        {int8_oid, int8_oid});
    prepare("events",
            "INSERT INTO " + events +
                " (position, event_id, type, tags, data, occurred_at, size, stored_at) SELECT p, i, t, g, "
                "d::json, "
                "o, s, now() FROM unnest($1, $2, $3, $4, $5, $6, $7) AS u(p, i, t, g, d, o, s)",
            {int8_array_oid, text_array_oid, text_array_oid, text_array_oid, text_array_oid,
             timestamptz_array_oid, int4_array_oid});
    prepare("tags", "INSERT INTO " + tags + " (hash, position) SELECT * FROM unnest($1, $2)",
            {int8_array_oid, int8_array_oid});
    if (PQenterPipelineMode(connection_) != 1) fail("pipeline");
  }
  ~LibpqAppender() override { PQfinish(connection_); }
  LibpqAppender(const LibpqAppender&) = delete;
  LibpqAppender& operator=(const LibpqAppender&) = delete;

  std::int64_t append(std::span<const BareStreamRow> rows, std::int64_t hash, std::int64_t after) override {
    const std::string key = int64_bytes(hash);
    const std::string from = int64_bytes(after);
    text("BEGIN");
    send("lock", {});
    send("head", {});
    send("probe", {key, from});
    std::vector<std::int64_t> numbers = finish();
    if (numbers.at(3) > 0) throw std::runtime_error("bare libpq: a conflict");
    std::int64_t position = numbers.at(2);

    BinaryArray positions(int8_oid, rows.size());
    BinaryArray ids(text_oid, rows.size());
    BinaryArray types(text_oid, rows.size());
    BinaryArray tags(text_oid, rows.size());
    BinaryArray data(text_oid, rows.size());
    BinaryArray times(timestamptz_oid, rows.size());
    BinaryArray sizes(int4_oid, rows.size());
    std::size_t total = 0;
    for (const BareStreamRow& row : rows) total += row.hashes.size();
    BinaryArray hashes(int8_oid, total);
    BinaryArray places(int8_oid, total);
    const std::string now = timestamp_now();
    for (const BareStreamRow& row : rows) {
      const std::string place = int64_bytes(++position);
      positions.add(place);
      ids.add(row.id.view());
      types.add(row.type);
      tags.add(row.tags);
      data.add(row.data);
      times.add(now);
      std::string size;
      append_int32(size, static_cast<std::int32_t>(row.data.size()));
      sizes.add(size);
      for (const std::int64_t one : row.hashes) {
        hashes.add(int64_bytes(one));
        places.add(place);
      }
    }
    send("events",
         {view(positions), view(ids), view(types), view(tags), view(data), view(times), view(sizes)});
    send("tags", {view(hashes), view(places)});
    text("COMMIT");
    (void)finish();
    return position;
  }

 private:
  static std::string_view view(const BinaryArray& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
  }
  void prepare(const char* name, const std::string& sql, std::initializer_list<Oid> types) {
    PGresult* const result =
        PQprepare(connection_, name, sql.c_str(), static_cast<int>(types.size()), types.begin());
    const bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!good) fail(name);
  }
  void text(const char* sql) {
    if (PQsendQueryParams(connection_, sql, 0, nullptr, nullptr, nullptr, nullptr, 1) != 1) fail(sql);
    ++sent_;
  }
  void send(const char* name, std::initializer_list<std::string_view> values) {
    std::array<const char*, 8> pointers{};
    std::array<int, 8> lengths{};
    std::array<int, 8> formats{};
    formats.fill(1);
    std::size_t i = 0;
    for (const std::string_view value : values) {
      pointers.at(i) = value.data();
      lengths.at(i++) = static_cast<int>(value.size());
    }
    if (PQsendQueryPrepared(connection_, name, static_cast<int>(values.size()), pointers.data(),
                            lengths.data(), formats.data(), 1) != 1) {
      fail(name);
    }
    ++sent_;
  }
  /// The first column of the first row of each statement as a number, 0 without one.
  std::vector<std::int64_t> finish() {
    if (PQpipelineSync(connection_) != 1) fail("sync");
    std::vector<std::int64_t> numbers;
    for (; sent_ > 0; --sent_) {
      PGresult* const result = PQgetResult(connection_);
      const ExecStatusType status = PQresultStatus(result);
      std::int64_t number = 0;
      if (status == PGRES_TUPLES_OK && PQntuples(result) > 0 && PQgetlength(result, 0, 0) == 8) {
        for (int byte = 0; byte < 8; ++byte) {
          number = number * 256 + static_cast<unsigned char>(PQgetvalue(result, 0, 0)[byte]);
        }
      }
      PQclear(result);
      if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail("statement");
      numbers.push_back(number);
      PQclear(PQgetResult(connection_));  // the end of this statement
    }
    PQclear(PQgetResult(connection_));  // the sync
    return numbers;
  }
  [[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("bare libpq: ") + what + ": " + PQerrorMessage(connection_));
  }

  PGconn* connection_;
  int sent_ = 0;
};

}  // namespace

std::unique_ptr<BareAppender> bare_appender_libpq(const std::string& url, const std::string& events,
                                                  const std::string& tags) {
  return std::make_unique<LibpqAppender>(url, events, tags);
}

}  // namespace postrider::bench

#else

namespace postrider::bench {

std::unique_ptr<BareAppender> bare_appender_libpq(const std::string&, const std::string&,
                                                  const std::string&) {
  throw Unavailable("libpq is not compiled in");
}

}  // namespace postrider::bench

#endif
