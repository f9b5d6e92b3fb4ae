// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/wire.hpp"

#include <charconv>
#include <cstring>
#include <limits>

#include "postrider/error.hpp"

namespace postrider::postgres {

namespace {

constexpr std::int64_t epoch_2000 = 946'684'800'000'000;  // in microseconds since 1970
constexpr std::int64_t infinity = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t minus_infinity = std::numeric_limits<std::int64_t>::min();

template <class T>
T read_big_endian(const char* bytes) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(static_cast<T>(value << 8) | static_cast<unsigned char>(bytes[i]));
  }
  return value;
}

int checked_length(std::size_t length) {
  // The protocol counts in 32 bits, and the server refuses messages over 1 GiB in any case.
  if (length > 1'000'000'000) {
    throw Error(ErrorCode::invalid_argument, "parameter too large", "more than 1 GB in one statement",
                "publish fewer events per call");
  }
  return static_cast<int>(length);
}

}  // namespace

std::int64_t to_pg_time(TimePoint time) noexcept {
  const std::int64_t micros = time.time_since_epoch().count();
  if (micros < minus_infinity + epoch_2000) return minus_infinity;
  return micros - epoch_2000;
}

TimePoint from_pg_time(std::int64_t time) noexcept {
  if (time > infinity - epoch_2000) return TimePoint::max();
  if (time == minus_infinity) return TimePoint::min();
  return TimePoint(Duration(time + epoch_2000));
}

void Params::clear() noexcept {
  buffer_.clear();
  slots_.clear();
}

void Params::put16(std::uint16_t value) {
  const char bytes[] = {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
  buffer_.append(bytes, sizeof bytes);
}

void Params::put32(std::uint32_t value) {
  const char bytes[] = {static_cast<char>(value >> 24), static_cast<char>((value >> 16) & 0xff),
                        static_cast<char>((value >> 8) & 0xff), static_cast<char>(value & 0xff)};
  buffer_.append(bytes, sizeof bytes);
}

void Params::put64(std::uint64_t value) {
  put32(static_cast<std::uint32_t>(value >> 32));
  put32(static_cast<std::uint32_t>(value & 0xffffffffU));
}

void Params::own(std::size_t from) {
  slots_.push_back({nullptr, from, checked_length(buffer_.size() - from)});
}

Params& Params::null() {
  slots_.push_back({nullptr, 0, -1});
  return *this;
}

Params& Params::text(std::string_view value) {
  // An empty view may have no address at all, which libpq would take for NULL.
  slots_.push_back({value.empty() ? "" : value.data(), 0, checked_length(value.size())});
  return *this;
}

Params& Params::int4(std::int32_t value) {
  const std::size_t from = buffer_.size();
  put32(static_cast<std::uint32_t>(value));
  own(from);
  return *this;
}

Params& Params::int8(std::int64_t value) {
  const std::size_t from = buffer_.size();
  put64(static_cast<std::uint64_t>(value));
  own(from);
  return *this;
}

Params& Params::timestamp(std::optional<TimePoint> value) {
  return value ? int8(to_pg_time(*value)) : null();
}

Params& Params::interval(Duration value) {
  const std::size_t from = buffer_.size();
  put64(static_cast<std::uint64_t>(value.count()));
  put64(0);  // days and months
  own(from);
  return *this;
}

Params& Params::boolean(bool value) {
  return text(value ? std::string_view("\1", 1) : std::string_view("\0", 1));
}

void Params::begin_array(Oid element_type, std::size_t count) {
  array_start_ = buffer_.size();
  array_has_null_ = false;
  put32(count == 0 ? 0 : 1);  // dimensions
  put32(0);                   // whether there are NULLs; set at the end
  put32(element_type);
  if (count == 0) return;
  put32(static_cast<std::uint32_t>(checked_length(count)));
  put32(1);  // lower bound
}

void Params::element(std::string_view bytes) {
  put32(static_cast<std::uint32_t>(checked_length(bytes.size())));
  buffer_.append(bytes);
}

void Params::element_null() {
  array_has_null_ = true;
  put32(0xffffffffU);
}

void Params::element_int2(std::int16_t value) {
  put32(2);
  put16(static_cast<std::uint16_t>(value));
}

void Params::element_int4(std::int32_t value) {
  put32(4);
  put32(static_cast<std::uint32_t>(value));
}

void Params::element_int8(std::int64_t value) {
  put32(8);
  put64(static_cast<std::uint64_t>(value));
}

void Params::element_interval(Duration value) {
  put32(16);
  put64(static_cast<std::uint64_t>(value.count()));
  put64(0);
}

void Params::end_array() {
  if (array_has_null_) buffer_[array_start_ + 7] = 1;
  own(array_start_);
}

Params::Native Params::native() const {
  values_.clear();
  lengths_.clear();
  formats_.assign(slots_.size(), 1);
  for (const Slot& slot : slots_) {
    const char* owned = slot.length < 0 ? nullptr : buffer_.data() + slot.offset;
    values_.push_back(slot.borrowed != nullptr ? slot.borrowed : owned);
    lengths_.push_back(slot.length < 0 ? 0 : slot.length);
  }
  return {values_.data(), lengths_.data(), formats_.data()};
}

std::string_view Result::text(int row, int column) const noexcept {
  return {PQgetvalue(native_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(native_.get(), row, column))};
}

bool Result::boolean(int row, int column) const noexcept {
  return !is_null(row, column) && *PQgetvalue(native_.get(), row, column) != 0;
}

std::int32_t Result::int4(int row, int column) const noexcept {
  return static_cast<std::int32_t>(read_big_endian<std::uint32_t>(PQgetvalue(native_.get(), row, column)));
}

std::int64_t Result::int8(int row, int column) const noexcept {
  return static_cast<std::int64_t>(read_big_endian<std::uint64_t>(PQgetvalue(native_.get(), row, column)));
}

std::int64_t Result::affected() const noexcept {
  // For a SELECT the server counts the rows that it returned.
  const std::string_view command = PQcmdStatus(native_.get());
  if (command.starts_with("SELECT") || command.starts_with("FETCH") || command.starts_with("MOVE")) return 0;
  const char* text = PQcmdTuples(native_.get());
  std::int64_t count = 0;
  std::from_chars(text, text + std::strlen(text), count);
  return count;
}

}  // namespace postrider::postgres
