// SPDX-License-Identifier: Apache-2.0
#include "storage/placeholders.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
/// All below return the position after the piece that begins at `at`; an unterminated piece goes to the end.
std::size_t end_of_quoted(std::string_view sql, std::size_t at, bool backslashes) {
  const char quote = sql[at];
  for (std::size_t i = at + 1; i < sql.size(); ++i) {
    if (backslashes && sql[i] == '\\') {
      ++i;
    } else if (sql[i] == quote) {
      if (i + 1 < sql.size() && sql[i + 1] == quote) {
        ++i;  // doubled: part of the text
      } else {
        return i + 1;
      }
    }
  }
  return sql.size();
}

std::size_t end_of_line_comment(std::string_view sql, std::size_t at) {
  const std::size_t end = sql.find('\n', at);
  return end == std::string_view::npos ? sql.size() : end + 1;
}

std::size_t end_of_block_comment(std::string_view sql, std::size_t at) {
  int depth = 0;  // PostgreSQL nests them
  for (std::size_t i = at; i + 1 < sql.size();) {
    const std::string_view two = sql.substr(i, 2);
    if (two == "/*") {
      ++depth;
      i += 2;
    } else if (two == "*/") {
      i += 2;
      if (--depth == 0) return i;
    } else {
      ++i;
    }
  }
  return sql.size();
}

/// Of `$tag$ … $tag$`; `at` itself when no dollar quote begins there.
std::size_t end_of_dollar_quote(std::string_view sql, std::size_t at) {
  std::size_t i = at + 1;
  while (i < sql.size() && is_word(sql[i])) ++i;
  if (i >= sql.size() || sql[i] != '$') return at;
  const std::string_view tag = sql.substr(at, i + 1 - at);
  const std::size_t end = sql.find(tag, i + 1);
  return end == std::string_view::npos ? sql.size() : end + tag.size();
}

bool has_escape_prefix(std::string_view sql, std::size_t quote) {
  if (quote == 0 || (sql[quote - 1] != 'E' && sql[quote - 1] != 'e')) return false;
  return quote == 1 || !is_word(sql[quote - 2]);
}

}  // namespace

NumberedStatement numbered_placeholders(std::string_view sql) {
  std::string numbered;
  numbered.reserve(sql.size() + 16);
  std::size_t count = 0;
  std::size_t highest = 0;  // of the statement's own
  std::size_t i = 0;
  while (i < sql.size()) {
    const char c = sql[i];
    const char next = i + 1 < sql.size() ? sql[i + 1] : '\0';
    std::size_t end = i + 1;
    if (c == '?') {
      numbered += '$';
      numbered += std::to_string(++count);
      ++i;
      continue;
    }
    if (c == '\'') {
      end = end_of_quoted(sql, i, has_escape_prefix(sql, i));
    } else if (c == '"') {
      end = end_of_quoted(sql, i, false);
    } else if (c == '-' && next == '-') {
      end = end_of_line_comment(sql, i);
    } else if (c == '/' && next == '*') {
      end = end_of_block_comment(sql, i);
    } else if (c == '$' && (i == 0 || !is_word(sql[i - 1]))) {
      if (is_digit(next)) {
        std::size_t number = 0;
        while (end < sql.size() && is_digit(sql[end])) {
          number = std::min<std::size_t>(number * 10 + static_cast<std::size_t>(sql[end++] - '0'), 1'000'000);
        }
        highest = std::max(highest, number);
      } else if (const std::size_t quoted = end_of_dollar_quote(sql, i); quoted != i) {
        end = quoted;
      }
    }
    numbered.append(sql.substr(i, end - i));
    i = end;
  }
  if (highest > 0) return {std::string(sql), highest};
  return {std::move(numbered), count};
}

void NumberedStatement::check(std::string_view original, std::size_t values) const {
  check_placeholders(
      original, placeholders, values,
      placeholders > values ? "a question mark that is an operator needs $1, $2 … as placeholders" : "");
}

void check_placeholders(std::string_view sql, std::size_t placeholders, std::size_t values,
                        std::string_view hint) {
  if (placeholders == values) return;
  throw Error(ErrorCode::invalid_argument, cannot_run(sql),
              "it has " + counted(placeholders, "placeholder") + " and was given " + counted(values, "value"),
              hint);
}

}  // namespace postrider
