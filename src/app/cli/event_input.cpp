// SPDX-License-Identifier: Apache-2.0
#include "app/cli/event_input.hpp"

#include <fstream>
#include <iostream>
#include <iterator>

#include "core/age.hpp"
#include "core/json_text.hpp"
#include "core/rfc3339.hpp"
#include "postrider/error.hpp"
#include "postrider/event.hpp"

namespace postrider::cli {
namespace {

std::string read_bounded(std::istream& in, const std::string& name) {
  std::string text;
  char part[65536];
  while (in.read(part, sizeof part) || in.gcount() > 0) {
    text.append(part, static_cast<std::size_t>(in.gcount()));
    if (text.size() > EventLimits::payload_bytes + 1) {  // a newline at the end does not count
      throw Error(ErrorCode::invalid_argument, "cannot take " + name,
                  "it has more than " + std::to_string(EventLimits::payload_bytes) + " bytes",
                  "an event can refer to what is large instead of carrying it");
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::string read_data(const std::string& given) {
  if (given == "-") return read_bounded(std::cin, "standard input");
  if (!given.starts_with('@')) return given;
  const std::string name = given.substr(1);
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    throw Error(ErrorCode::invalid_argument, "cannot read " + name,
                "there is no such file, or it is not yours",
                "@ stands before the name of a file; JSON is given as it is");
  }
  return read_bounded(file, name);
}

std::string read_json(const std::string& option, const std::string& given) {
  std::string text = read_data(given);
  if (const auto fault = json_fault(text, EventLimits::json_depth)) {
    throw Error(ErrorCode::invalid_argument, option + " is refused", "it is not valid JSON, " + *fault,
                "quote it for the shell, as in " + option + " '{\"id\": 1}'; " + option + " @file and " +
                    option + " - read a file and standard input");
  }
  return text;
}

std::pair<std::string, std::string> name_and_value(const std::string& option, const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0) {
    throw Error(ErrorCode::invalid_argument, option + " '" + text + "' is refused",
                "it is not of the form name=value");
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

TimePoint time_of_option(const std::string& option, const std::string& text) {
  const std::optional<TimePoint> time = parse_time(text);
  if (!time) {
    throw Error(ErrorCode::invalid_argument, option + " '" + text + "' is refused",
                "it is no time as RFC 3339 has it",
                "write it like 2026-06-01T10:15:30Z, in the years 1000 to 9999");
  }
  return *time;
}

std::optional<TimePoint> time_or_age(const std::string& option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (const std::optional<TimePoint> time = parse_time(text)) return time;
  try {
    return Clock::system().now() - parse_age(option, text);
  } catch (const Error&) {
    throw Error(ErrorCode::invalid_argument, option + " '" + text + "' is refused",
                "it is neither a time nor an age",
                "write it like 2026-06-01T10:15:30Z, or like 90d, 12h, 30m");
  }
}

}  // namespace postrider::cli
