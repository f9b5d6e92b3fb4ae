// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"

namespace postrider::test {

/// Keeps what is logged, from any thread.
class LoggedLines {
 public:
  [[nodiscard]] LogCallback callback() {
    return [this](LogLevel, std::string_view line) {
      const MutexLock lock(mutex_);
      lines_.emplace_back(line);
    };
  }
  [[nodiscard]] std::vector<std::string> all() const {
    const MutexLock lock(mutex_);
    return lines_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> lines_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::test
