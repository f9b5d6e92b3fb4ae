// SPDX-License-Identifier: Apache-2.0
#include "core/option_check.hpp"

#include <unistd.h>

#include <array>
#include <utility>

#include "core/utf8.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "postrider/event_id.hpp"

namespace postrider {

void OptionCheck::refuse(std::string_view option, const std::string& value, const std::string& bounds) const {
  throw Error(ErrorCode::invalid_argument,
              "cannot use " + std::string(owner_) + "::" + std::string(option) + " = " + value,
              "it must be " + bounds);
}

void OptionCheck::count(std::string_view option, std::size_t value, std::size_t least,
                        std::size_t most) const {
  if (value < least || value > most) {
    refuse(option, std::to_string(value),
           "between " + std::to_string(least) + " and " + std::to_string(most));
  }
}

void OptionCheck::number(std::string_view option, int value, int least, int most) const {
  if (value < least || value > most) {
    refuse(option, std::to_string(value),
           "between " + std::to_string(least) + " and " + std::to_string(most));
  }
}

void OptionCheck::time(std::string_view option, Duration value, Duration least, Duration most) const {
  if (value < least || value > most) {
    refuse(option, text_of(value), "between " + text_of(least) + " and " + text_of(most));
  }
}

void OptionCheck::text(std::string_view option, std::string_view value, std::size_t most_chars) const {
  const auto chars = utf8_length(value);
  if (!chars || *chars > most_chars || value.find('\0') != std::string_view::npos) {
    refuse(option, "'" + utf8_repaired(value) + "'",
           "at most " + std::to_string(most_chars) + " characters of UTF-8");
  }
}

std::string process_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {"host"};
  const std::string name(utf8_prefix(host.data(), 32));
  return utf8_repaired(name) + "/" + std::to_string(getpid());
}

std::string default_node_name() {
  return process_name() + "/" + std::string(new_event_id().view().substr(16));
}

LogCallback guarded(LogCallback log) {
  if (!log) return [](LogLevel, std::string_view) {};
  return [log = std::move(log)](LogLevel level, std::string_view message) {
    try {
      log(level, message);
    } catch (...) {
      log_to_stderr()(LogLevel::error,
                      "postrider: the log callback threw; it was to say: " + std::string(message));
    }
  };
}

}  // namespace postrider
