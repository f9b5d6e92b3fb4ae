// SPDX-License-Identifier: Apache-2.0
#include "core/ulid.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr std::uint64_t last_moment = (std::uint64_t{1} << 48) - 1;  // in the year 10889
constexpr std::uint64_t high_mask = 0xFFFF;

std::uint64_t milliseconds(TimePoint time) noexcept {
  const auto count = std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
  return std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0)), last_moment);
}

/// Crockford's base 32: sorts like the number, and has none of the letters that are read as digits.
EventId encode(std::uint64_t ms, std::uint64_t high, std::uint64_t low) {
  constexpr std::string_view alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  std::array<char, 26> text{};
  for (std::size_t i = 10; i-- > 0; ms >>= 5) text[i] = alphabet[ms & 31];
  for (std::size_t i = 26; i-- > 10;) {
    text[i] = alphabet[low & 31];
    low = (low >> 5) | (high << 59);
    high >>= 5;
  }
  return EventId(std::string_view(text.data(), text.size()));
}

}  // namespace

UlidGenerator::UlidGenerator(Clock& clock, std::function<std::uint64_t()> random)
    : clock_(clock), random_(std::move(random)) {
  // For a clock that stands at or before 1970: there too, the count starts somewhere else in every process.
  high_ = random_() & high_mask;
  low_ = random_();
}

EventId UlidGenerator::next() {
  const MutexLock lock(mutex_);
  const std::uint64_t now = milliseconds(clock_.now());
  if (now > last_ms_) {
    last_ms_ = now;
    high_ = random_() & high_mask;
    low_ = random_();
  } else if (++low_ == 0 && ++high_ > high_mask) {
    if (last_ms_ == last_moment) {
      high_ = high_mask;  // so that the next call ends here as well, instead of repeating ids
      low_ = ~std::uint64_t{0};
      throw Error(ErrorCode::unsupported, "cannot make a new event id",
                  "the clock is past the last ULID, in the year 10889",
                  "set the clock, or give events their ids yourself");
    }
    ++last_ms_;
    high_ = random_() & high_mask;
    low_ = random_();
  }
  return encode(last_ms_, high_, low_);
}

}  // namespace postrider
