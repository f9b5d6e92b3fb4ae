// SPDX-License-Identifier: Apache-2.0
#include "core/age.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "postrider/error.hpp"

namespace postrider {
namespace {

std::int64_t seconds_of(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return 86'400;
    case 'w':
      return 7 * 86'400;
    default:
      return 0;
  }
}

}  // namespace

Duration parse_age(std::string_view option, std::string_view text) {
  constexpr std::int64_t most = std::int64_t{1000} * 365 * 86'400;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::int64_t seconds = unit.size() == 1 ? seconds_of(unit.front()) : 0;
  if (error == std::errc{} && seconds != 0 && count == 0) {
    throw Error(ErrorCode::invalid_argument, std::string(option) + " '" + std::string(text) + "' is refused",
                "an age is more than nothing: every event would be meant", "write 1s if that is meant");
  }
  if (error != std::errc{} || count < 1 || seconds == 0 || count > most / seconds) {
    throw Error(ErrorCode::invalid_argument, std::string(option) + " '" + std::string(text) + "' is refused",
                "it is no time", "write a whole number and s, m, h, d or w, as in 90d");
  }
  return std::chrono::seconds{count * seconds};
}

std::string format_age(Duration age) {
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  constexpr std::array<std::pair<char, std::int64_t>, 4> units{
      {{'w', 604'800}, {'d', 86'400}, {'h', 3'600}, {'m', 60}}};
  for (const auto& [unit, size] : units) {
    if (seconds != 0 && seconds % size == 0) return std::to_string(seconds / size) + unit;
  }
  return std::to_string(seconds) + 's';
}

}  // namespace postrider
