// SPDX-License-Identifier: Apache-2.0
#include "core/filter_bounds.hpp"

#include "core/text_bounds.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr std::size_t most_values = 10'000;
constexpr std::size_t longest_text = 4'000;
constexpr Duration longest_age = std::chrono::hours{24 * 365 * 1000};

}  // namespace

void check_filter_values(std::string_view filter, std::size_t values) {
  if (values <= most_values) return;
  throw Error(ErrorCode::invalid_argument, std::string(filter) + " has " + std::to_string(values) + " values",
              "at most " + std::to_string(most_values) + " are taken", "split the lists");
}

const FilterBounds& FilterBounds::age(std::string_view field, const std::optional<Duration>& age) const {
  if (age && (*age < Duration::zero() || *age > longest_age)) {
    throw Error(ErrorCode::invalid_argument, what_, std::string(field) + " must be between 0 and 1000 years");
  }
  return *this;
}

const FilterBounds& FilterBounds::text(std::string_view field, const std::optional<std::string>& text) const {
  if (text) check_text_bounds(what_, field, *text, 0, longest_text);
  return *this;
}

const FilterBounds& FilterBounds::texts(std::string_view field, const FilterList<std::string>& texts) const {
  if (!texts.is_set()) return *this;
  for (const std::string& one : texts.values()) check_text_bounds(what_, field, one, 0, longest_text);
  return *this;
}

}  // namespace postrider
