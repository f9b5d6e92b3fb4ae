// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace postrider {

/// A list in a filter. One that was never set matches everything. One that was set matches what is in it:
/// nothing when it is empty, so that `cancel({.ids = what_a_search_found})` cancels nothing when the search
/// found nothing.
///
///     filter.ids = {a, b};        // these two
///     filter.ids = found;         // a std::vector, also an empty one
///     filter.ids = {};            // not set: all
template <class T>
class FilterList {
 public:
  FilterList() = default;
  FilterList(std::vector<T> values) : values_(std::move(values)) {}  // NOLINT(google-explicit-constructor)
  FilterList(std::initializer_list<T> values) : values_(std::vector<T>(values)) {}

  [[nodiscard]] bool is_set() const noexcept { return values_.has_value(); }
  /// How many values were given; 0 when none were, or when it is not set.
  [[nodiscard]] std::size_t size() const noexcept { return values_ ? values_->size() : 0; }
  /// Only when `is_set`.
  [[nodiscard]] const std::vector<T>& values() const { return values_.value(); }
  /// Sets it, if it is not, and adds one.
  void push_back(T value) { (values_ ? *values_ : values_.emplace()).push_back(std::move(value)); }

 private:
  std::optional<std::vector<T>> values_;
};

}  // namespace postrider
