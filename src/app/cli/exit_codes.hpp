// SPDX-License-Identifier: Apache-2.0
// What the program's exit codes mean: for --help, the man page, docs/cli.md and `postrider explain`.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace postrider::cli {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_unknown = 3;  ///< as run_daemon's exit_gave_up

struct ExitCode {
  int code;
  std::string_view meaning;
};

inline constexpr std::array<ExitCode, 4> exit_codes{{
    {exit_ok, "all went well; of doctor and verify: nothing was found"},
    {exit_failed,
     "it failed, or what was named is not there, and the message says why; doctor and verify: something was "
     "found"},
    {exit_usage,
     "the command line cannot be understood (a value that is refused later: 1); nothing was done"},
    {exit_unknown, "serve and eventlog: ended without knowing what became of everything"},
}};
/// `postrider check` speaks to monitoring systems, and these have their own.
inline constexpr std::array<ExitCode, 4> check_exit_codes{{
    {0, "OK"},
    {1, "WARNING: a figure is beyond a --warn option"},
    {2, "CRITICAL: a figure is beyond a --crit option"},
    {3, "UNKNOWN: the database does not answer, or the command line was wrong"},
}};

/// The end of `postrider --help`.
[[nodiscard]] inline std::string exit_codes_text() {
  std::string text = "Exit codes:\n";
  for (const ExitCode& one : exit_codes) {
    text.append("  ").append(std::to_string(one.code)).append("  ").append(one.meaning).append("\n");
  }
  text += "Exit codes of check:\n";
  for (const ExitCode& one : check_exit_codes) {
    text.append("  ").append(std::to_string(one.code)).append("  ").append(one.meaning).append("\n");
  }
  return text;
}

}  // namespace postrider::cli
