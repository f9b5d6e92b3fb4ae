// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

namespace postrider::test {

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Secrets that are put in, and nowhere allowed to come out again.
class Canaries {
 public:
  /// A new one. Letters and digits alone, so that no way of writing it down changes it.
  std::string make(const std::string& of) {
    std::string secret = "C4nary" + of + std::to_string(secrets_.size()) + "x9Qe71mZ";
    secrets_.emplace(of, secret);
    return secret;
  }
  /// One that others have made.
  void add(const std::string& of, const std::string& secret) {
    ASSERT_GE(secret.size(), 12U) << of << " would be found anywhere";
    secrets_.emplace(of, secret);
  }
  /// Each line of a file that is as long as chance does not make it.
  void add_lines(const std::string& of, const std::string& path) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (line.size() > 20 && !line.starts_with("-----")) add(of + " " + line.substr(0, 4), line);
    }
  }
  /// Looks through what the program has said.
  void look_for_in(const std::string& where, std::string_view said) const {
    for (const auto& [of, secret] : secrets_) {
      const std::size_t at = said.find(secret);
      if (at == std::string_view::npos) continue;
      const std::size_t from = at < 200 ? 0 : at - 200;
      ADD_FAILURE() << where << " shows the secret '" << of << "': " << said.substr(from, 400);
    }
  }

 private:
  std::multimap<std::string, std::string> secrets_;
};

}  // namespace postrider::test
