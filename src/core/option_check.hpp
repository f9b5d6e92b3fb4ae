// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"
#include "postrider/log.hpp"

namespace postrider {

/// Refuses options that are out of bounds, with a message that names option, value and bounds.
class OptionCheck {
 public:
  /// `owner` is how users know them: "OutboxOptions". Must outlive the object.
  explicit OptionCheck(std::string_view owner) noexcept : owner_(owner) {}

  void count(std::string_view option, std::size_t value, std::size_t least, std::size_t most) const;
  void number(std::string_view option, int value, int least, int most) const;
  void time(std::string_view option, Duration value, Duration least, Duration most) const;
  /// Text for a column of so many characters.
  void text(std::string_view option, std::string_view value, std::size_t most_chars) const;
  [[noreturn]] void refuse(std::string_view option, const std::string& value,
                           const std::string& bounds) const;

 private:
  std::string_view owner_;
};

/// Host and process id: "web-1/4711".
[[nodiscard]] std::string process_name();
/// The same and a random tail, which keeps a restarted process with a recycled pid apart from its
/// predecessor.
[[nodiscard]] std::string default_node_name();

/// The same callback, or none; what it throws goes no further, so that it cannot end a worker.
[[nodiscard]] LogCallback guarded(LogCallback log);

}  // namespace postrider
