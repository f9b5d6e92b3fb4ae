// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <ostream>

#include "app/api/json_values.hpp"
#include "app/cli/table_fit.hpp"
#include "core/utf8.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

std::size_t width_of(std::string_view text) {
  return utf8_length(text).value_or(text.size());
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return right ? space + text : text + space;
}

/// Characters of two or three bytes that a terminal obeys, or that turn the text around them: C1 controls,
/// line and paragraph separators, bidirectional overrides and isolates. How many bytes; 0 for others.
std::size_t command_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) <= 0x9F) return 2;
  if (byte(0) != 0xE2) return 0;
  const bool separator_or_override = byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE;
  const bool isolate = byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;
  return separator_or_override || isolate ? 3 : 0;
}

/// An event's type may be anything: nothing of it reaches the terminal as a command.
std::string visible(std::string_view given) {
  const std::string text = utf8_repaired(given);
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    std::size_t escaped = command_at(std::string_view(text).substr(i));
    if (first < 0x20 || first == 0x7f) escaped = 1;
    if (escaped == 0) {
      out += text[i++];
      continue;
    }
    for (; escaped > 0; --escaped, ++i) {
      constexpr std::string_view hex = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(text[i]);
      out += "\\x";
      out += hex[byte >> 4U];
      out += hex[byte & 15U];
    }
  }
  return out;
}

std::string cut_to(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  return std::string(utf8_prefix(text, width - 1)) + "…";
}

}  // namespace

std::string cell(const json::value& value) {
  if (value.is_null()) return "-";
  if (const json::string* text = value.if_string()) {
    return text->empty() ? "-" : visible(std::string_view(text->data(), text->size()));
  }
  if (const double* number = value.if_double()) {
    char text[32];
    const int size = std::snprintf(text, sizeof(text), "%.3f", *number);  // NOLINT: vararg by design
    return {text, static_cast<std::size_t>(size)};
  }
  return api::serialized(value);
}

void Table::print(std::ostream& out, Format format, std::string_view nothing, bool colour,
                  std::optional<std::size_t> columns) const {
  if (format == Format::json) {
    out << api::serialized(rows_) << '\n';
    return;
  }
  if (rows_.empty()) {
    out << nothing << '\n';
    return;
  }
  std::vector<ColumnNeed> needs;
  std::vector<std::vector<std::string>> cells(rows_.size());
  for (const Column& column : columns_) {
    const std::size_t title = width_of(column.title);
    ColumnNeed need{title, title, column.cut, column.spare, true};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const json::value* const value = rows_[i].as_object().if_contains(column.name);
      const std::string& text = cells[i].emplace_back(value == nullptr ? "-" : cell(*value));
      need.widest = std::max(need.widest, width_of(text));
      need.empty = need.empty && text == "-";
    }
    needs.push_back(need);
  }
  const std::vector<std::size_t> widths =
      fitted(needs, columns.value_or(std::numeric_limits<std::size_t>::max()));
  const auto line = [&](const auto& text_of) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      if (!text.empty()) text.append(column_gap, ' ');
      text += padded(cut_to(text_of(i), widths[i]), widths[i], columns_[i].right);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  const std::string head = line([&](std::size_t i) { return columns_[i].title; });
  out << (colour ? "\x1b[1m" + head + "\x1b[0m" : head) << '\n';
  for (const auto& row : cells) out << line([&](std::size_t i) { return row[i]; }) << '\n';
  std::string left_out;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0 && !needs[i].empty) left_out += (left_out.empty() ? "" : ", ") + columns_[i].title;
  }
  if (left_out.empty()) return;
  out << "(without " << left_out << ": the terminal has " << *columns << " columns; -o json has all)\n";
}

void print_object(std::ostream& out, Format format, const json::object& object, bool colour) {
  if (format == Format::json) {
    out << api::serialized(object) << '\n';
    return;
  }
  std::size_t width = 0;
  for (const auto& member : object) width = std::max(width, width_of(member.key()));
  for (const auto& member : object) {
    const std::string name = padded(std::string(member.key()), width, false);
    out << (colour ? "\x1b[1m" + name + "\x1b[0m" : name) << "  " << cell(member.value()) << '\n';
  }
}

bool colour_wanted() {
  const char* const none = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): before any thread
  return ::isatty(STDOUT_FILENO) == 1 && (none == nullptr || *none == '\0');
}

}  // namespace postrider::cli
