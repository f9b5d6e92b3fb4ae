// SPDX-License-Identifier: Apache-2.0
#include "app/cli/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

namespace postrider::cli {
namespace {

constexpr Duration between_drawings = std::chrono::milliseconds{100};
constexpr std::int64_t bar_cells = 30;
constexpr std::size_t usual_columns = 80;

}  // namespace

bool output_is_terminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}

std::optional<std::size_t> terminal_columns() {
  if (!output_is_terminal()) return std::nullopt;
  if (const char* const given = std::getenv("COLUMNS")) {  // NOLINT(concurrency-mt-unsafe): nobody sets it
    const std::string_view text = given;
    std::size_t columns = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (failed == std::errc{} && end == text.data() + text.size() && columns > 0) return columns;
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return usual_columns;
}

bool can_ask() {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
}

bool ask(const std::string& question) {
  std::cerr << "postrider: " << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

bool nobody_reads() {
  pollfd out{STDOUT_FILENO, 0, 0};  // of a pipe without a reader: POLLERR
  return ::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

bool reader_has_left() {
  return !std::cout.good() || nobody_reads();
}

Progress::Progress(std::string what) : what_(std::move(what)), wanted_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  clear();
}

void Progress::show(std::int64_t done, std::int64_t all) {
  const SteadyPoint now = Clock::system().steady_now();
  if (!wanted_ || now < next_) return;
  next_ = now + between_drawings;
  drawn_ = true;
  const std::int64_t whole = std::max<std::int64_t>({all, done, 1});
  const std::int64_t filled = done * bar_cells / whole;
  std::cerr << "\r\x1b[K" << what_ << " [" << std::string(static_cast<std::size_t>(filled), '#')
            << std::string(static_cast<std::size_t>(bar_cells - filled), '.') << "] " << done << "/" << whole
            << std::flush;
}

void Progress::clear() {
  if (std::exchange(drawn_, false)) std::cerr << "\r\x1b[K" << std::flush;
}

}  // namespace postrider::cli
