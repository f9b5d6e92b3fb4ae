// SPDX-License-Identifier: Apache-2.0
// What include/postrider/pqxx.hpp needs from the library. pqxx itself is the user's, so nothing here includes
// it.
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "backends/postgres/errors.hpp"
#include "core/wording.hpp"
#include "storage/placeholders.hpp"
#include "storage/transaction_control.hpp"

namespace postrider::postgres::detail {

// Declared in the public header, which cannot be included without pqxx.
[[nodiscard]] Error error_from(std::string_view what, const std::string& sqlstate, std::string_view message,
                               bool connection_lost);
[[nodiscard]] std::string numbered(std::string_view sql, std::size_t values);
[[nodiscard]] std::string cannot_run(std::string_view sql);
[[nodiscard]] bool changes_rows(std::string_view sql);
[[nodiscard]] std::string bytea_text(std::string_view bytes);
[[nodiscard]] std::string number_text(double number);

Error error_from(std::string_view what, const std::string& sqlstate, std::string_view message,
                 bool connection_lost) {
  std::string line(message);
  while (!line.empty() && (line.back() == '\n' || line.back() == '.')) line.pop_back();
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return make_error(what, {.sqlstate = sqlstate, .message = line, .connection_lost = connection_lost});
}

std::string numbered(std::string_view sql, std::size_t values) {
  NumberedStatement statement = numbered_placeholders(sql);
  statement.check(sql, values);
  return std::move(statement.sql);
}

std::string cannot_run(std::string_view sql) {
  return postrider::cannot_run(sql);
}

bool changes_rows(std::string_view sql) {
  const std::string word = first_word(BackendKind::postgres, sql);
  return word == "INSERT" || word == "UPDATE" || word == "DELETE" || word == "MERGE";
}

std::string bytea_text(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\\x";
  text.reserve(2 + 2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string number_text(double number) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.17g", number);
  return text.data();
}

}  // namespace postrider::postgres::detail
