// SPDX-License-Identifier: Apache-2.0
// What codes mean, and what to do about them: for `postrider explain`.
#pragma once

#include <span>
#include <string_view>

namespace postrider::cli {

struct Explanation {
  std::string_view code;  ///< "storage-unavailable"
  std::string_view kind;  ///< where one meets it
  std::string_view meaning;
  std::string_view advice;
};

/// All that there are. A code may stand there more than once, with another kind.
[[nodiscard]] std::span<const Explanation> explanations() noexcept;

inline constexpr std::string_view kind_error = "error of the library";
inline constexpr std::string_view kind_problem = "answer of the API";
inline constexpr std::string_view kind_loss = "loss of the logger";
inline constexpr std::string_view kind_cause = "why it is stuck";
inline constexpr std::string_view kind_exit = "exit code";

}  // namespace postrider::cli
