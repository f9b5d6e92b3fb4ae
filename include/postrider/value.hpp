// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace postrider {

/// Bytes for a binary column; plain strings go to text columns. Borrowed: must outlive the call it is passed
/// to.
struct Blob {
  std::string_view bytes;
};

/// Numbers that a parameter can be. `char` and its wide kin are none: 'A' may mean a text or a number. Pass
/// `std::string_view(&c, 1)` or `int{c}`. (`std::int8_t` and `std::uint8_t` are numbers.)
template <class T>
concept SqlInteger = std::integral<T> && sizeof(T) <= sizeof(std::int64_t) && !std::same_as<T, bool> &&
                     !std::same_as<T, char> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                     !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// One SQL parameter: NULL, a number, a text or bytes; `bool` is 0 or 1, an empty `std::optional` and a null
/// `const char*` are NULL. Text and blobs are borrowed: they must outlive the call. What is none of these
/// does not compile: pointers, enums, `char`, and classes that merely convert to a number or make a new
/// string.
class Value {
 public:
  using Storage = std::variant<std::monostate, std::int64_t, double, std::string_view, Blob>;

  // NOLINTBEGIN(google-explicit-constructor)
  Value(std::nullptr_t) {}
  Value(std::nullopt_t) {}
  template <class T>
  requires std::same_as<T, double> || std::same_as<T, float> Value(T v) : v_(static_cast<double>(v)) {}
  template <std::same_as<bool> T>
  Value(T v) : v_(std::int64_t{v}) {}
  /// Throws Error(invalid_argument) above 2^63 - 1.
  template <SqlInteger T>
  Value(T v) : v_(in_range(v)) {}
  Value(const char* v) {
    if (v != nullptr) v_ = std::string_view(v);
  }
  Value(std::string_view v) : v_(v) {}
  template <std::same_as<std::string> T>
  Value(const T& v) : v_(std::string_view(v)) {}
  Value(Blob v) : v_(v) {}
  template <class T>
  requires std::is_constructible_v<Value, const T&> Value(const std::optional<T>& v) {
    if (v.has_value()) v_ = Value(*v).v_;
  }
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] const Storage& get() const noexcept { return v_; }

 private:
  template <class T>
  static std::int64_t in_range(T v) {
    if constexpr (std::same_as<std::make_unsigned_t<T>, T> && sizeof(T) == sizeof(std::int64_t)) {
      if (v > static_cast<T>(std::numeric_limits<std::int64_t>::max())) refuse(v);
    }
    return static_cast<std::int64_t>(v);
  }
  [[noreturn]] static void refuse(std::uint64_t v);

  Storage v_;
};

/// What a statement returned: rows of nullable text, as the database prints it, and how many rows it changed
/// (of a SELECT: none). Meant for small results; large ones belong to your own driver.
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
