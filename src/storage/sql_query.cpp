// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_query.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "postrider/error.hpp"

namespace postrider {

std::string around(std::string_view pattern, std::string_view inner) {
  const std::size_t at = pattern.find("{}");
  std::string text(pattern.substr(0, at));
  text.append(inner).append(pattern.substr(at + 2));
  return text;
}

SqlQuery& SqlQuery::bind_time(TimePoint time) {
  params_.emplace_back(time.time_since_epoch().count());
  return sql(around(dialect_.from_micros, "?"));
}

SqlQuery& SqlQuery::bind_limit(std::size_t limit) {
  constexpr std::size_t most = std::numeric_limits<std::int64_t>::max();
  return bind(static_cast<std::int64_t>(std::min(limit, most)));
}

SqlQuery& SqlQuery::now() {
  if (dialect_.clock != nullptr) return bind_time(dialect_.clock->now());
  return sql(dialect_.now);
}

SqlQuery& SqlQuery::now_plus(Duration span) {
  if (dialect_.clock != nullptr) return bind_time(dialect_.clock->now() + span);
  params_.emplace_back(span.count());
  // In a subquery of its own, because PostgreSQL's clock_timestamp() would be asked again for every row and
  // keeps the index from being used.
  return sql("(select ")
      .sql(around(dialect_.from_micros, "(" + around(dialect_.to_micros, dialect_.now) + " + ?)"))
      .sql(")");
}

SqlQuery& SqlQuery::and_equals(std::string_view column, const std::optional<std::string>& value) {
  if (value.has_value()) sql(" and ").sql(column).sql(" = ").bind(*value);
  return *this;
}

SqlQuery& SqlQuery::contains(std::string_view column, std::string_view needle) {
  switch (dialect_.kind) {
    case BackendKind::sqlite:
      return sql("instr(").sql(column).sql(", ").bind(needle).sql(") > 0");
    case BackendKind::postgres:
      return sql("strpos(").sql(column).sql(", ").bind(needle).sql(") > 0");
    case BackendKind::mariadb:
      break;
  }
  return sql("instr(").sql(column).sql(", cast(").bind(needle).sql(" as binary)) > 0");
}

std::int64_t number(const Rows::Cell& cell) {
  std::int64_t value = 0;
  if (!cell.has_value()) return value;
  const auto [end, error] = std::from_chars(cell->data(), cell->data() + cell->size(), value);
  if (error != std::errc{} || end != cell->data() + cell->size()) {
    throw Error(ErrorCode::database, "cannot read a row", "'" + *cell + "' is not a whole number");
  }
  return value;
}

TimePoint time_of(const Rows::Cell& cell) {
  return TimePoint(Duration(number(cell)));
}

std::string text(const Rows::Cell& cell) {
  return cell.value_or(std::string());
}

bool flag(const Rows::Cell& cell) {
  return cell == "1" || cell == "t";
}

std::string bytes_from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return bytes;
}

}  // namespace postrider
