// SPDX-License-Identifier: Apache-2.0
// What commands say: tables for people, JSON for programs.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/terminal.hpp"

namespace postrider::cli {

enum class Format { table, json };

/// Rows of the same members. On a terminal a table with a bold head that fits into its width; into a pipe the
/// same without colour, and whole; with `-o json` an array of objects.
class Table {
 public:
  struct Column {
    std::string name;    ///< the member: "lagEvents"
    std::string title;   ///< the head: "LAG"
    bool right = false;  ///< numbers
    bool cut = false;    ///< where the terminal is narrow its texts are cut; not what the next command needs
    int spare = 0;       ///< and it may be left out: the highest first; 0 never
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Members that have no column are for JSON alone.
  void add(boost::json::object row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  /// `nothing` is said instead of an empty table.
  void print(std::ostream& out, Format format, std::string_view nothing, bool colour,
             std::optional<std::size_t> columns = terminal_columns()) const;

 private:
  std::vector<Column> columns_;
  boost::json::array rows_;
};

/// One object: a line per member, or JSON.
void print_object(std::ostream& out, Format format, const boost::json::object& object, bool colour);

/// A value as a cell: texts as they are with control characters made visible, null as "-".
[[nodiscard]] std::string cell(const boost::json::value& value);

/// Whether standard output is a terminal, and nobody has asked for no colours (NO_COLOR).
[[nodiscard]] bool colour_wanted();

}  // namespace postrider::cli
