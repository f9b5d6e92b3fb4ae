// SPDX-License-Identifier: Apache-2.0
// What the bare sides share that talk libpq. Only where it is compiled in.
#pragma once

#include <libpq-fe.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace postrider::bench {

// From pg_type.dat; libpq has no header for them.
inline constexpr Oid text_oid = 25;
inline constexpr Oid text_array_oid = 1009;
inline constexpr Oid timestamptz_oid = 1184;
inline constexpr Oid timestamptz_array_oid = 1185;

inline void append_int32(std::string& out, std::int32_t value) {
  const auto bits = static_cast<std::uint32_t>(value);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>((bits >> shift) & 0xFF);
}

inline std::string int64_bytes(std::int64_t value) {
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
inline std::string timestamp_now() {
  using namespace std::chrono;
  constexpr sys_days epoch{year{2000} / 1 / 1};
  return int64_bytes(duration_cast<microseconds>(system_clock::now() - epoch).count());
}

class LibpqConnection {
 public:
  explicit LibpqConnection(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) fail("connect");
    // A statement prepared while the table is empty would otherwise keep its sequential scan.
    simple("SET enable_seqscan = off");
  }
  ~LibpqConnection() { PQfinish(connection_); }
  LibpqConnection(const LibpqConnection&) = delete;
  LibpqConnection& operator=(const LibpqConnection&) = delete;

  void prepare(const char* name, const std::string& sql, std::span<const Oid> types) {
    (void)check(PQprepare(connection_, name, sql.c_str(), static_cast<int>(types.size()), types.data()),
                name);
  }
  void simple(const char* sql) { (void)check(PQexec(connection_, sql), sql); }
  /// Returns how many rows were affected. Parameters and results are binary.
  std::size_t execute(const char* name, std::span<const char* const> values, std::span<const int> lengths) {
    std::array<int, 8> formats;
    formats.fill(1);
    return check(PQexecPrepared(connection_, name, static_cast<int>(values.size()), values.data(),
                                lengths.data(), formats.data(), 1),
                 name);
  }

 private:
  std::size_t check(PGresult* result, const char* what) {
    const ExecStatusType status = PQresultStatus(result);
    const std::string_view affected = PQcmdTuples(result);
    std::size_t rows = 0;
    std::from_chars(affected.data(), affected.data() + affected.size(), rows);
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail(what);
    return rows;
  }
  [[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("bare libpq: ") + what + ": " + PQerrorMessage(connection_));
  }

  PGconn* connection_;
};

}  // namespace postrider::bench
