// SPDX-License-Identifier: Apache-2.0
#include "publishers/nats/subject.hpp"

#include <algorithm>

namespace postrider::nats {
namespace {

bool fits(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte != 0x7f && c != '*' && c != '>';
}

}  // namespace

void check_subject(const OptionCheck& check, std::string_view subject) {
  const bool whole =
      !subject.starts_with('.') && !subject.ends_with('.') && subject.find("..") == std::string_view::npos;
  if (!whole || !std::all_of(subject.begin(), subject.end(), fits) || subject.starts_with('$') ||
      subject.starts_with("_INBOX.")) {
    check.refuse("subject", "'" + std::string(subject) + "'",
                 "tokens with dots between them, without spaces and wildcards, and not of the server's own");
  }
  if (subject.substr(0, subject.find('.')).find('{') != std::string_view::npos) {
    check.refuse("subject", "'" + std::string(subject) + "'", "a subject whose first token is fixed");
  }
}

void check_stream(const OptionCheck& check, std::string_view stream) {
  constexpr std::size_t longest = 255;
  const bool good = !stream.empty() && std::all_of(stream.begin(), stream.end(), [](char c) {
    return fits(c) && c != '.' && c != '/' && c != '\\';
  });
  if (!good)
    check.refuse("stream", "'" + std::string(stream) + "'",
                 "a name without spaces, dots, slashes and wildcards");
  check.text("stream", stream, longest);
}

void append_token(std::string& out, std::string_view value) {
  for (const char c : value) out += fits(c) && c != '.' ? c : '_';
}

std::string subjects_of(std::string_view subject) {
  std::string all;
  for (;;) {
    const std::size_t dot = subject.find('.');
    const std::string_view token = subject.substr(0, dot);
    all += token.find('{') == std::string_view::npos ? token : std::string_view("*");
    if (dot == std::string_view::npos) return all;
    all += '.';
    subject.remove_prefix(dot + 1);
  }
}

}  // namespace postrider::nats
