// SPDX-License-Identifier: Apache-2.0
#include "postrider/value.hpp"

#include <charconv>

#include "core/utf8.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

std::string place(std::size_t row, std::size_t column) {
  return "row " + std::to_string(row) + ", column " + std::to_string(column);
}

const Rows::Cell& cell(const Rows& rows, std::size_t row, std::size_t column) {
  if (row >= rows.rows.size()) {
    throw Error(ErrorCode::invalid_argument, "there is no " + place(row, column),
                "the statement returned " + counted(rows.rows.size(), "row"), "check size() first");
  }
  if (column >= rows.rows[row].size()) {
    throw Error(ErrorCode::invalid_argument, "there is no " + place(row, column),
                "the statement returned " + counted(rows.rows[row].size(), "column"), "columns count from 0");
  }
  return rows.rows[row][column];
}

}  // namespace

void Value::refuse(std::uint64_t v) {
  throw Error(ErrorCode::invalid_argument, "cannot bind " + std::to_string(v) + " as a parameter",
              "it does not fit into a signed 64-bit integer", "pass it as text");
}

const std::string& Rows::text(std::size_t row, std::size_t column) const {
  const Cell& found = cell(*this, row, column);
  if (!found) {
    throw Error(ErrorCode::invalid_argument, "no value at " + place(row, column), "it is NULL",
                "ask is_null() first");
  }
  return *found;
}

std::int64_t Rows::integer(std::size_t row, std::size_t column) const {
  const std::string& digits = text(row, column);
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || stopped != end) {
    throw Error(
        ErrorCode::invalid_argument, "no integer at " + place(row, column),
        "it is '" + utf8_repaired(utf8_prefix(digits, 64)) + "'",
        error == std::errc::result_out_of_range ? "it does not fit into 64 bits" : "read it with text()");
  }
  return number;
}

bool Rows::is_null(std::size_t row, std::size_t column) const {
  return !cell(*this, row, column).has_value();
}

}  // namespace postrider
