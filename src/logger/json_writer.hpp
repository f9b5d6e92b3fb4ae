// SPDX-License-Identifier: Apache-2.0
// Writing behind a pointer: what bounds the rate at which an outage can be taken to disk. Each function
// returns the end of what it wrote, and says how much room it wants; it may use all of that room as scratch.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "postrider/clock.hpp"

namespace postrider::logger {

/// Room for the inside of a JSON string: an escape for each byte, and a block that is written as a whole.
[[nodiscard]] constexpr std::size_t escaped_room(std::size_t bytes) noexcept {
  constexpr std::size_t block = 16;
  return 6 * bytes + block;
}
/// Without the quotes around it. Control characters are escaped, so that it stays on one line; each byte that
/// is no valid UTF-8 becomes U+FFFD. Room: `escaped_room`.
[[nodiscard]] char* put_escaped(char* out, std::string_view text);
/// The same for a part of a larger text, which ends at `end`: what lies between the two may be read as well,
/// and short texts are quicker for it.
[[nodiscard]] char* put_escaped_part(char* out, std::string_view text, const char* end);

inline char* put(char* out, std::string_view text) noexcept {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

/// Sixteen hexadecimal digits.
[[nodiscard]] char* put_hex(char* out, std::uint64_t value) noexcept;

/// Writes times in ISO 8601, "2026-06-01T10:15:30.123Z" with six digits when there are microseconds.
/// Remembers the text of the last second: events come in the order of time. Not synchronised.
class TimeWriter {
 public:
  static constexpr std::size_t room = 32;
  [[nodiscard]] char* put(char* out, TimePoint time);

 private:
  static constexpr std::size_t text_size = 20;  // up to the dot
  std::int64_t second_ = INT64_MIN;
  char text_[text_size]{};
};

}  // namespace postrider::logger
