// SPDX-License-Identifier: Apache-2.0
#include "core/wording.hpp"

#include <array>

#include "core/utf8.hpp"

namespace postrider {

std::string counted(std::size_t count, std::string_view noun) {
  std::string text = std::to_string(count);
  text.append(" ").append(noun);
  if (count != 1) text += 's';
  return text;
}

std::string text_of(Duration time) {
  constexpr Duration day = std::chrono::hours{24};
  if (time == Duration::zero()) return "0 s";
  if (time == day) return "1 day";
  struct Unit {
    Duration length;
    const char* name;
  };
  constexpr std::array<Unit, 4> units{{{day, " days"},
                                       {std::chrono::seconds{1}, " s"},
                                       {std::chrono::milliseconds{1}, " ms"},
                                       {Duration{1}, " us"}}};
  const auto* unit = units.begin();
  while (time % unit->length != Duration::zero()) ++unit;
  return std::to_string(time / unit->length) + unit->name;
}

std::string cannot_run(std::string_view sql) {
  const std::string_view begin = utf8_prefix(sql, 80);
  return "cannot run '" + utf8_repaired(begin) + (begin.size() < sql.size() ? "…'" : "'");
}

}  // namespace postrider
