// SPDX-License-Identifier: Apache-2.0
#include "storage/transaction_control.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>

#include "storage/placeholders.hpp"

namespace postrider {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
/// The words of a statement, one after the other, in upper case.
class Words {
 public:
  Words(BackendKind kind, std::string_view sql) : kind_(kind), sql_(sql) {}

  /// The next one that is no semicolon.
  std::string first() {
    std::string word = next();
    while (word == ";") word = next();
    return word;
  }

  /// Empty at the end. What is no word (a sign, a literal, a variable of the user's) comes as one sign.
  std::string next() {
    skip_blank();
    if (at_ >= sql_.size()) return {};
    const char c = sql_[at_];
    if (is_word(c)) return word();
    if (c == '\'' || c == '"' || c == '`') return quoted(c);
    ++at_;
    if (c == '@' && rest().starts_with('@')) {  // a system variable: its name follows
      ++at_;
    } else if (c == '@') {
      (void)word();
    }
    return std::string(1, c);
  }

 private:
  [[nodiscard]] bool mariadb() const { return kind_ == BackendKind::mariadb; }
  [[nodiscard]] std::string_view rest() const { return sql_.substr(std::min(at_, sql_.size())); }
  void skip_past(std::string_view end) {
    const std::size_t found = rest().find(end);
    at_ = found == std::string_view::npos ? sql_.size() : at_ + found + end.size();
  }

  std::string word() {
    std::string text;
    for (; at_ < sql_.size() && is_word(sql_[at_]); ++at_) {
      text += static_cast<char>(std::toupper(static_cast<unsigned char>(sql_[at_])));
    }
    return text;
  }

  std::string quoted(char quote) {
    ++at_;
    if (quote == '`' && mariadb()) return word();  // the name of a variable; the closing sign is one more
    while (at_ < sql_.size() && sql_[at_] != quote) at_ += sql_[at_] == '\\' && mariadb() ? 2 : 1;
    ++at_;
    return std::string(1, quote);
  }

  void skip_blank() {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";  // white space to SQLite
    for (;;) {
      const std::string_view left = rest();
      if (left.empty()) return;
      if (is_space(left.front())) {
        ++at_;
      } else if (left.starts_with(byte_order_mark)) {
        at_ += byte_order_mark.size();
      } else if (left.starts_with("/*")) {
        skip_block_comment();
      } else if (is_line_comment(left)) {
        skip_past("\n");
      } else if (mariadb() && left.starts_with("*/")) {  // of a comment that is run
        at_ += 2;
      } else {
        return;
      }
    }
  }

  [[nodiscard]] bool is_line_comment(std::string_view left) const {
    if (!mariadb()) return left.starts_with("--");
    return left.starts_with('#') || left == "--" || (left.starts_with("--") && is_space(left[2]));
  }

  void skip_block_comment() {
    if (mariadb() &&
        (rest().starts_with("/*!") || rest().starts_with("/*M!"))) {  // MariaDB runs what is in it
      skip_past("!");
      while (at_ < sql_.size() && std::isdigit(static_cast<unsigned char>(sql_[at_])) != 0) ++at_;
      return;
    }
    at_ += 2;
    if (kind_ != BackendKind::postgres) return skip_past("*/");
    for (int depth = 1; depth > 0 && at_ < sql_.size();) {  // PostgreSQL nests them
      const std::string_view left = rest();
      const bool opens = left.starts_with("/*");
      const bool closes = left.starts_with("*/");
      depth += opens ? 1 : (closes ? -1 : 0);
      at_ += opens || closes ? 2 : 1;
    }
  }

  BackendKind kind_;
  std::string_view sql_;
  std::size_t at_ = 0;
};

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// MariaDB runs whole programs, and other statements, out of one statement.
TransactionControl mariadb_control(const std::string& first, Words& words) {
  constexpr std::array<std::string_view, 17> plain{
      "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH",     "VALUES",  "(",      "SAVEPOINT",
      "CREATE", "ALTER",  "DROP",   "RENAME", "SHOW",    "TRUNCATE", "EXPLAIN", "RELEASE"};
  if (first == "XA") return TransactionControl::ends;
  if (first == "LOCK" || first == "UNLOCK") {
    const std::string second = words.next();
    return second == "TABLE" || second == "TABLES" ? TransactionControl::ends : TransactionControl::hides;
  }
  if (first == "SET") {
    std::string word = words.next();
    if (word == "STATEMENT") return TransactionControl::hides;
    for (; !word.empty(); word = words.next()) {
      if (word == "AUTOCOMMIT") return TransactionControl::ends;
    }
    return TransactionControl::none;
  }
  return first.empty() || one_of(first, plain) ? TransactionControl::none : TransactionControl::hides;
}

}  // namespace

TransactionControl transaction_control(BackendKind kind, std::string_view sql) {
  constexpr std::array<std::string_view, 4> always{"BEGIN", "COMMIT", "END", "ABORT"};
  Words words(kind, sql);
  const std::string first = words.first();
  if (one_of(first, always)) return TransactionControl::ends;
  if (first == "ROLLBACK") {
    std::string second = words.next();
    if (second == "WORK" || second == "TRANSACTION") second = words.next();
    return second == "TO" ? TransactionControl::undoes : TransactionControl::ends;
  }
  if (first == "START" || first == "PREPARE") {
    if (words.next() == "TRANSACTION") return TransactionControl::ends;
  }
  return kind == BackendKind::mariadb ? mariadb_control(first, words) : TransactionControl::none;
}

std::string first_word(BackendKind kind, std::string_view sql) {
  return Words(kind, sql).first();
}

}  // namespace postrider
