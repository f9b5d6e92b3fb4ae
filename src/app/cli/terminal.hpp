// SPDX-License-Identifier: Apache-2.0
// What is different when a person sits at the other end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "postrider/clock.hpp"

namespace postrider::cli {

[[nodiscard]] bool output_is_terminal();
/// Characters in a line of standard output: COLUMNS when it says so, else what the terminal says, else 80.
/// Nothing when it is no terminal.
[[nodiscard]] std::optional<std::size_t> terminal_columns();
/// Whether a question can be asked, and will be seen.
[[nodiscard]] bool can_ask();
/// "… [y/N]" on standard error. False for all but a yes.
[[nodiscard]] bool ask(const std::string& question);
/// Whoever reads standard output has left.
[[nodiscard]] bool reader_has_left();
/// Standard output is a pipe whose other end was closed: who did that wants no more, and is told of no error.
[[nodiscard]] bool nobody_reads();

/// A bar on standard error, for a terminal only; elsewhere nothing is written.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Draws at most ten times a second.
  void show(std::int64_t done, std::int64_t all);
  /// Removes the bar, so that other lines may be written.
  void clear();

 private:
  const std::string what_;
  const bool wanted_;
  bool drawn_ = false;
  SteadyPoint next_{};
};

}  // namespace postrider::cli
