// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace postrider {

/// Bytes for a binary column; plain strings go to text columns. Borrowed: must outlive the call it is passed
/// to.
struct Blob {
  std::string_view bytes;
};

/// One SQL parameter. Text and blobs are borrowed: they must outlive the call.
class Value {
 public:
  using Storage = std::variant<std::monostate, std::int64_t, double, std::string_view, Blob>;

  Value(std::nullptr_t) {}                                  // NOLINT(google-explicit-constructor)
  Value(std::nullopt_t) {}                                  // NOLINT(google-explicit-constructor)
  Value(double v) : v_(v) {}                                // NOLINT(google-explicit-constructor)
  Value(bool v) : v_(std::int64_t{v}) {}                    // NOLINT(google-explicit-constructor)
  Value(const char* v) : v_(std::string_view(v)) {}         // NOLINT(google-explicit-constructor)
  Value(std::string_view v) : v_(v) {}                      // NOLINT(google-explicit-constructor)
  Value(const std::string& v) : v_(std::string_view(v)) {}  // NOLINT(google-explicit-constructor)
  Value(Blob v) : v_(v) {}                                  // NOLINT(google-explicit-constructor)
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T v)
      : v_(static_cast<std::int64_t>(v)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const Storage& get() const noexcept { return v_; }

 private:
  Storage v_;
};

/// What a statement returned: rows of nullable text, as the database prints it, and how many rows it changed.
/// Meant for small results; large ones belong to your own driver.
struct Rows {
  using Cell = std::optional<std::string>;
  std::vector<std::vector<Cell>> rows;
  std::int64_t affected = 0;

  [[nodiscard]] bool empty() const noexcept { return rows.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return rows.size(); }
  /// The text at (row, column); throws Error(invalid_argument) when it is out of range or NULL.
  [[nodiscard]] const std::string& text(std::size_t row, std::size_t column) const;
  /// The same as a number; throws when it isn't one.
  [[nodiscard]] std::int64_t integer(std::size_t row, std::size_t column) const;
  [[nodiscard]] bool is_null(std::size_t row, std::size_t column) const;
};

}  // namespace postrider
