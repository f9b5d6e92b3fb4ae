// SPDX-License-Identifier: Apache-2.0
#include "postrider/log.hpp"

#include <cstdio>
#include <string>

#include "core/log_line.hpp"

namespace postrider {
std::string log_line(LogLevel level, std::string_view message) {
  // Messages made from an Error name the library already.
  constexpr std::string_view name = "postrider: ";
  if (message.substr(0, name.size()) == name) message.remove_prefix(name.size());
  std::string line = "postrider ";
  line += to_string(level);
  line += ": ";
  for (const char c : message) line += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? ' ' : c;
  line += '\n';
  return line;
}

LogCallback log_to_stderr(LogLevel least) {
  return [least](LogLevel level, std::string_view message) noexcept {
    if (level < least) return;
    try {
      // One write per line, so that lines of several threads don't mix.
      const std::string line = log_line(level, message);
      std::fwrite(line.data(), 1, line.size(), stderr);
    } catch (...) {
      // Out of memory for one line: say at least that, there is nobody left to tell the details.
      std::fputs("postrider error: a log line was lost: out of memory\n", stderr);
    }
  };
}

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "unknown";
}

}  // namespace postrider
