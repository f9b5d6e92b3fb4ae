// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace postrider {

/// How many events of one key are worth claiming together: about as many as are usually delivered between two
/// failures. When one fails, those claimed behind it are given back unseen, and writing them twice for
/// nothing would cost more than asking more often. Not thread-safe.
class RunLength {
 public:
  /// Some ordered events were delivered, and then some of them failed.
  void ended(std::size_t delivered, std::size_t failed) noexcept {
    streak_ += std::min(delivered, enough);
    streak_ = std::min(streak_, enough);
    for (; failed > 0; --failed) {
      usual_ = (3 * usual_ + streak_) / 4;
      streak_ = 0;
      if (usual_ == 0) break;  // it stays so
    }
  }

  /// Grows with the present streak, so that it doubles with every run once failures have stopped.
  [[nodiscard]] std::size_t limit() const noexcept { return std::max<std::size_t>({1, usual_, streak_}); }

 private:
  static constexpr std::size_t enough = 1'000'000;

  std::size_t usual_ = enough;
  std::size_t streak_ = 0;
};

}  // namespace postrider
