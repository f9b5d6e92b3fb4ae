// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "postrider/event_log_entry.hpp"

namespace postrider::logger {

/// Walks over the fields of a packed entry. The bytes may come from a file that somebody damaged: a walk
/// never leaves them.
///
///     PackedFields fields(bytes);
///     while (fields.next()) use(fields.field(), fields.value());
///     if (fields.damaged()) …
class PackedFields {
 public:
  using Field = EventLogEntry::Field;
  static constexpr std::size_t head = 1 + sizeof(std::uint32_t);

  explicit PackedFields(std::string_view packed) noexcept : rest_(packed) {}

  bool next() noexcept {
    if (rest_.empty()) return false;
    std::uint32_t size = 0;
    if (rest_.size() < head) return damage();
    std::memcpy(&size, rest_.data() + 1, sizeof size);
    const auto tag = static_cast<std::uint8_t>(rest_.front());
    if (tag < static_cast<std::uint8_t>(Field::application_id) ||
        tag > static_cast<std::uint8_t>(Field::extra_json) || size > rest_.size() - head) {
      return damage();
    }
    field_ = static_cast<Field>(tag);
    value_ = rest_.substr(head, size);
    rest_.remove_prefix(head + size);
    if (field_ == Field::timestamp && size != sizeof(std::int64_t)) return damage();
    if (is_extra() && !split_extra()) return damage();
    return true;
  }
  [[nodiscard]] Field field() const noexcept { return field_; }
  [[nodiscard]] std::string_view value() const noexcept { return value_; }
  [[nodiscard]] bool is_extra() const noexcept {
    return field_ == Field::extra_text || field_ == Field::extra_json;
  }
  /// Of an extra.
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  /// Bytes that follow the current field.
  [[nodiscard]] std::size_t rest() const noexcept { return rest_.size(); }
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }

 private:
  bool damage() noexcept {
    damaged_ = true;
    rest_ = {};
    return false;
  }
  bool split_extra() noexcept {
    std::uint16_t size = 0;
    if (value_.size() < sizeof size) return false;
    std::memcpy(&size, value_.data(), sizeof size);
    if (size > value_.size() - sizeof size) return false;
    name_ = value_.substr(sizeof size, size);
    value_.remove_prefix(sizeof size + size);
    return true;
  }

  std::string_view rest_;
  std::string_view value_;
  std::string_view name_;
  Field field_ = Field::application_id;
  bool damaged_ = false;
};

/// The key may stand between quotes as it is.
[[nodiscard]] bool is_plain_key(std::string_view key) noexcept;
inline constexpr std::size_t max_key_size = 64;

}  // namespace postrider::logger
