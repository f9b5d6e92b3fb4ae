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
  const std::string what = std::string(option) + " '" + std::string(text) + "' is refused";
  if (seconds == 0 || error == std::errc::invalid_argument) {
    throw Error(ErrorCode::invalid_argument, what, "it is no time",
                "write a whole number and s, m, h, d or w, as in 90d");
  }
  if (error != std::errc{} || count < 1 || count > most / seconds) {
    throw Error(ErrorCode::invalid_argument, what, "it must be from 1s to 365000d, a thousand years");
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

std::string format_about(Duration age) {
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  constexpr std::array<std::pair<char, std::int64_t>, 3> units{{{'d', 86'400}, {'h', 3'600}, {'m', 60}}};
  for (const auto& [unit, size] : units) {
    if (seconds >= 2 * size) return std::to_string(seconds / size) + unit;
  }
  return std::to_string(seconds) + 's';
}

}  // namespace postrider
