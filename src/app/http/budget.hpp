// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace postrider::http {

/// How much memory all bodies together may take: what has really arrived counts, not what was announced, so
/// that slow clients hold nothing that they have not sent. Thread-safe.
class Budget {
 public:
  explicit Budget(std::size_t bytes) noexcept : limit_(bytes) {}

  /// A part of the budget, given back at its end. Used by one thread at a time.
  class Hold {
   public:
    Hold() = default;
    explicit Hold(Budget& budget) noexcept : budget_(&budget) {}
    Hold(Hold&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Hold() {
      if (budget_ != nullptr) budget_->used_ -= bytes_;
    }
    /// False when there is no room; then nothing is taken.
    [[nodiscard]] bool grow(std::size_t bytes) noexcept {
      if (budget_ == nullptr || !budget_->take(bytes)) return false;
      bytes_ += bytes;
      return true;
    }

   private:
    Budget* budget_ = nullptr;
    std::size_t bytes_ = 0;
  };

  [[nodiscard]] std::size_t used() const noexcept { return used_; }

 private:
  [[nodiscard]] bool take(std::size_t bytes) noexcept {
    if (used_.fetch_add(bytes) + bytes <= limit_) return true;
    used_ -= bytes;
    return false;
  }

  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace postrider::http
