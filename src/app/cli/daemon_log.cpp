// SPDX-License-Identifier: Apache-2.0
#include "app/cli/daemon_log.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/log_line.hpp"
#include "core/rfc3339.hpp"
#include "postrider/clock.hpp"

namespace postrider::cli {
namespace {

/// Always with milliseconds, so that the lines stand below each other.
std::string log_time(TimePoint now) {
  using std::chrono::duration_cast;
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  const auto thousandths = duration_cast<std::chrono::milliseconds>(now - second).count();
  std::string text = format_time(second);
  text.pop_back();  // the Z
  const std::string digits = std::to_string(1000 + thousandths);
  return text + "." + digits.substr(1) + "Z";
}

}  // namespace

bool is_journal(const char* stream, int descriptor) {
  struct stat open_file {};
  if (stream == nullptr || ::fstat(descriptor, &open_file) != 0) return false;
  return std::to_string(open_file.st_dev) + ":" + std::to_string(open_file.st_ino) == stream;
}

LogCallback daemon_log(LogLevel least) {
  const char* const stream = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe): at start
  if (is_journal(stream, STDERR_FILENO)) return log_to_stderr(least);
  return [least](LogLevel level, std::string_view message) noexcept {
    if (level < least) return;
    try {
      // In one write, so that lines of several threads don't mix.
      const std::string line = log_time(Clock::system().now()) + " " + log_line(level, message);
      std::fwrite(line.data(), 1, line.size(), stderr);
    } catch (...) {
      std::fputs("postrider error: a log line was lost: out of memory\n", stderr);
    }
  };
}

}  // namespace postrider::cli
