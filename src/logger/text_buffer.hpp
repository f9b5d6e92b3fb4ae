// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace postrider::logger {

/// Bytes that grow at the end, by somebody who writes behind a pointer. Unlike a string it does not first
/// write zeros where something else will stand.
class TextBuffer {
 public:
  /// Room for `bytes` more, right behind the end. What is written there counts after `take`.
  [[nodiscard]] char* reserve(std::size_t bytes) {
    if (capacity_ - size_ < bytes) grow(bytes);
    return bytes_.get() + size_;
  }
  /// Everything before `end`, which lies in what was reserved last.
  void take(const char* end) noexcept { size_ = static_cast<std::size_t>(end - bytes_.get()); }
  void truncate(std::size_t size) noexcept { size_ = size; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.get(), size_}; }

 private:
  void grow(std::size_t bytes) {
    const std::size_t capacity = std::max(size_ + bytes, capacity_ * 2);
    std::unique_ptr<char[]> larger(new char[capacity]);
    if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace postrider::logger
