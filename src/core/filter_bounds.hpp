// SPDX-License-Identifier: Apache-2.0
// What an operator's filter may ask for: what no event can have is a mistake of the caller, not a search in
// vain.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"
#include "postrider/filter_list.hpp"

namespace postrider {

/// Throws Error(invalid_argument) when all lists of `filter` ("a queue filter") have too many values.
void check_filter_values(std::string_view filter, std::size_t values);

/// All throw Error(invalid_argument), beginning with `what`.
class FilterBounds {
 public:
  explicit FilterBounds(std::string_view what) : what_(what) {}

  /// From 0 to a thousand years.
  const FilterBounds& age(std::string_view field, const std::optional<Duration>& age) const;
  /// UTF-8 without NUL, at most 4000 characters.
  const FilterBounds& text(std::string_view field, const std::optional<std::string>& text) const;
  const FilterBounds& texts(std::string_view field, const FilterList<std::string>& texts) const;

 private:
  std::string_view what_;
};

}  // namespace postrider
