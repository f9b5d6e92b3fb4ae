// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/tx_statement.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "postrider/error.hpp"

namespace postrider::postgres {

namespace {

/// ISO 8601 in UTC, which is read alike under every DateStyle and TimeZone.
std::string timestamp_text(TimePoint time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const int year = static_cast<int>(date.year());
  if (time == TimePoint::max() || year > 32'000) return "infinity";
  if (time == TimePoint::min() || year < -4'700) return "-infinity";
  const std::chrono::hh_mm_ss<Duration> clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u %02d:%02d:%02d.%06d+00%s",
                year > 0 ? year : 1 - year, static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()), year > 0 ? "" : " BC");
  return text.data();
}

}  // namespace

TextBinder& TextBinder::null() {
  values_.emplace_back();
  return *this;
}

TextBinder& TextBinder::text(std::string_view value) {
  values_.emplace_back(value);
  return *this;
}

TextBinder& TextBinder::int8(std::int64_t value) {
  values_.emplace_back(std::to_string(value));
  return *this;
}

TextBinder& TextBinder::timestamp(std::optional<TimePoint> value) {
  return value ? text(timestamp_text(*value)) : null();
}

void TextBinder::begin_array(Oid element_type, std::size_t /*count*/) {
  array_ = "{";
  bytes_ = element_type == oid::bytea;
}

void TextBinder::separate() {
  if (array_.size() > 1) array_ += ',';
}

void TextBinder::element(std::string_view bytes) {
  separate();
  array_ += '"';
  if (bytes_) {
    constexpr std::string_view digits = "0123456789abcdef";
    array_ += "\\\\x";
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      array_ += digits[byte >> 4];
      array_ += digits[byte & 15];
    }
  } else {
    for (const char c : bytes) {
      if (c == '"' || c == '\\') array_ += '\\';
      array_ += c;
    }
  }
  array_ += '"';
}

void TextBinder::element_null() {
  separate();
  array_ += "NULL";
}

void TextBinder::element_int8(std::int64_t value) {
  separate();
  array_ += std::to_string(value);
}

void TextBinder::element_timestamp(TimePoint value) {
  separate();
  array_.append("\"").append(timestamp_text(value)).append("\"");
}

void TextBinder::end_array() {
  array_ += '}';
  values_.emplace_back(std::move(array_));
}

std::vector<Value> TextBinder::values() const {
  std::vector<Value> values;
  values.reserve(values_.size());
  for (const auto& value : values_) values.push_back(value ? Value(*value) : Value(nullptr));
  return values;
}

std::size_t TxRows::size() const {
  if (const auto* result = std::get_if<Result>(&rows_)) return static_cast<std::size_t>(result->rows());
  return std::get<Rows>(rows_).size();
}

std::int64_t TxRows::int8(std::size_t row, int column) const {
  if (const auto* result = std::get_if<Result>(&rows_)) return result->int8(static_cast<int>(row), column);
  return std::get<Rows>(rows_).integer(row, static_cast<std::size_t>(column));
}

std::string_view TxRows::text(std::size_t row, int column) const {
  if (const auto* result = std::get_if<Result>(&rows_)) return result->text(static_cast<int>(row), column);
  return std::get<Rows>(rows_).text(row, static_cast<std::size_t>(column));
}

void require_postgres(const Tx& tx, std::string_view what) {
  if (tx.kind() == BackendKind::postgres) return;
  throw Error(ErrorCode::wrong_storage, what,
              "the transaction belongs to " + std::string(to_string(tx.kind())) + ", the queue to postgres",
              "use a transaction of the queue's own database");
}

}  // namespace postrider::postgres
