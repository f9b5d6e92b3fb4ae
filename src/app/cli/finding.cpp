// SPDX-License-Identifier: Apache-2.0
#include "app/cli/finding.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <ostream>

#include "app/api/json_values.hpp"

namespace postrider::cli {

namespace json = boost::json;

std::string level_text(Finding::Level level, const std::string& bad) {
  switch (level) {
    case Finding::Level::ok:
      return "ok";
    case Finding::Level::note:
      return "note";
    case Finding::Level::skipped:
      return "skipped";
    case Finding::Level::bad:
      break;
  }
  return bad;
}

std::size_t Findings::bad_ones() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      all_.begin(), all_.end(), [](const Finding& one) { return one.level == Finding::Level::bad; }));
}

void Findings::print(std::ostream& out, Format format, const std::string& bad) const {
  if (format == Format::json) {
    json::array list;
    for (const Finding& one : all_) {
      list.push_back({{"name", one.name},
                      {"status", level_text(one.level, bad)},
                      {"text", one.text},
                      {"mend", one.mend.empty() ? json::value(nullptr) : json::value(one.mend)}});
    }
    out << api::serialized(list) << '\n';
    return;
  }
  constexpr std::size_t column = 10;
  for (const Finding& one : all_) {
    std::string level = level_text(one.level, bad);
    level.resize(std::max(column, level.size() + 1), ' ');
    out << level << cell(json::value(one.name)) << ": " << cell(json::value(one.text)) << '\n';
    if (!one.mend.empty()) out << std::string(column, ' ') << "→ " << cell(json::value(one.mend)) << '\n';
  }
}

}  // namespace postrider::cli
