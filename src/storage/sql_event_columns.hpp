// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "postrider/value.hpp"
#include "storage/row_decoder.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// How many cells `event_columns` makes.
inline constexpr std::size_t event_column_count = 11;

/// What event_queue and event_log have in common, as a list for SELECT.
[[nodiscard]] std::string event_columns(const SqlDialect& dialect);

/// The cells of `event_columns`, from the first of the row on. Owns the payload where it had to be unpacked;
/// the rest is borrowed from the row.
class EventCells {
 public:
  explicit EventCells(const std::vector<Rows::Cell>& row);
  EventCells(const EventCells&) = delete;
  EventCells& operator=(const EventCells&) = delete;
  [[nodiscard]] const OutboxColumns& columns() const noexcept { return columns_; }

 private:
  std::string bytes_;
  OutboxColumns columns_;
};

}  // namespace postrider
