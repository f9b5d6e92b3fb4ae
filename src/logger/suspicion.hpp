// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace postrider::logger {

/// Whether an answer may speak of the event: an error of the receiver's program, or a guard before it that
/// dislikes the text. 401, 404 and the like speak of the set-up, 502 and the like of the receiver's state.
[[nodiscard]] bool blames_event(int status) noexcept;

/// What speaks against the first event on disk while it is not taken: is it the event, or the receiver? Knows
/// no event and sends nothing.
class Suspicion {
 public:
  /// Failures of one event before another one is asked.
  static constexpr int patience = 3;

  /// It has failed, with an answer of this status, 0 when there was none. `successes` counts what the
  /// receiver has taken from others so far; `vouched` says that it had taken some since the failure before,
  /// and that nobody else can be asked.
  void failed(int status, bool vouched, std::uint64_t successes) noexcept;
  void clear() noexcept { failures_ = vouched_ = 0; }

  [[nodiscard]] bool any() const noexcept { return failures_ > 0; }
  /// Others were taken since it failed last.
  [[nodiscard]] bool others_taken(std::uint64_t successes) const noexcept {
    return any() && successes != successes_;
  }
  /// It has failed so often that one other event, if it is taken, is enough to tell.
  [[nodiscard]] bool strong() const noexcept { return failures_ > patience; }
  /// It has failed so often while others were taken that nobody has to be asked.
  [[nodiscard]] bool proven() const noexcept { return vouched_ > 2 * patience; }

 private:
  int failures_ = 0;             // in a row, by answers that may be about it
  int vouched_ = 0;              // of these, while others were taken
  std::uint64_t successes_ = 0;  // when it failed last
};

}  // namespace postrider::logger
