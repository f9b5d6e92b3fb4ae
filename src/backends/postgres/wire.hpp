// SPDX-License-Identifier: Apache-2.0
// PostgreSQL's binary parameter and result formats: nothing is escaped, nothing is parsed from text.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"

namespace postrider::postgres {

/// Object ids of the built-in types that we send in arrays; fixed for ever in pg_type.
namespace oid {
inline constexpr Oid boolean = 16;
inline constexpr Oid bytea = 17;
inline constexpr Oid int8 = 20;
inline constexpr Oid int2 = 21;
inline constexpr Oid int4 = 23;
inline constexpr Oid text = 25;
inline constexpr Oid json = 114;
inline constexpr Oid timestamptz = 1184;
inline constexpr Oid interval = 1186;
}  // namespace oid

/// Microseconds since 2000-01-01 UTC, as timestamptz travels. Saturates at the type's infinities.
[[nodiscard]] std::int64_t to_pg_time(TimePoint time) noexcept;
[[nodiscard]] TimePoint from_pg_time(std::int64_t time) noexcept;

/// The parameters of one statement, all in binary format. Reuse one object: `clear` keeps its memory.
/// The statement's text gives every parameter its type (`$1::text[]`), so no object ids travel beside them.
class Params {
 public:
  void clear() noexcept;

  Params& null();
  /// Borrowed: must live until the statement was sent. Also right for json, varchar and bytea.
  Params& text(std::string_view value);
  /// NULL when empty, for columns whose "none" is NULL.
  Params& text_or_null(std::string_view value) { return value.empty() ? null() : text(value); }
  Params& int4(std::int32_t value);
  Params& int8(std::int64_t value);
  Params& timestamp(std::optional<TimePoint> value);
  Params& interval(Duration value);
  Params& boolean(bool value);

  /// An array of `count` elements; add exactly that many before the next parameter.
  void begin_array(Oid element_type, std::size_t count);
  void element(std::string_view bytes);
  void element_null();
  void element_boolean(bool value) { element(value ? std::string_view("\1", 1) : std::string_view("\0", 1)); }
  void element_int2(std::int16_t value);
  void element_int4(std::int32_t value);
  void element_int8(std::int64_t value);
  void element_timestamp(TimePoint value) { element_int8(to_pg_time(value)); }
  void element_interval(Duration value);
  void end_array();

  [[nodiscard]] int count() const noexcept { return static_cast<int>(slots_.size()); }
  /// The arrays that libpq wants; valid until the next change.
  struct Native {
    const char* const* values;
    const int* lengths;
    const int* formats;
  };
  [[nodiscard]] Native native() const;

 private:
  struct Slot {
    const char* borrowed;  // or null: in buffer_, or NULL when `length` is negative
    std::size_t offset;
    int length;
  };
  void put16(std::uint16_t value);
  void put32(std::uint32_t value);
  void put64(std::uint64_t value);
  void own(std::size_t from);

  std::string buffer_;
  std::vector<Slot> slots_;
  std::size_t array_start_ = 0;
  bool array_has_null_ = false;
  mutable std::vector<const char*> values_;
  mutable std::vector<int> lengths_;
  mutable std::vector<int> formats_;
};

struct ResultDeleter {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};

/// One statement's result in binary format. Column and row numbers are the caller's to get right.
class Result {
 public:
  Result() = default;
  explicit Result(PGresult* native) noexcept : native_(native) {}

  [[nodiscard]] PGresult* get() const noexcept { return native_.get(); }
  [[nodiscard]] ExecStatusType status() const noexcept { return PQresultStatus(native_.get()); }
  [[nodiscard]] int rows() const noexcept { return PQntuples(native_.get()); }
  [[nodiscard]] bool is_null(int row, int column) const noexcept {
    return PQgetisnull(native_.get(), row, column) != 0;
  }
  /// Empty for NULL. Valid as long as the result.
  [[nodiscard]] std::string_view text(int row, int column) const noexcept;
  [[nodiscard]] bool boolean(int row, int column) const noexcept;
  [[nodiscard]] std::int32_t int4(int row, int column) const noexcept;
  [[nodiscard]] std::int64_t int8(int row, int column) const noexcept;
  [[nodiscard]] TimePoint timestamp(int row, int column) const noexcept {
    return from_pg_time(int8(row, column));
  }
  /// How many rows the statement changed; zero for those that change none.
  [[nodiscard]] std::int64_t affected() const noexcept;

 private:
  std::unique_ptr<PGresult, ResultDeleter> native_;
};

}  // namespace postrider::postgres
