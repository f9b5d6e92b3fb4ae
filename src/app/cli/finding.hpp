// SPDX-License-Identifier: Apache-2.0
// What `doctor` and `verify` say.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "app/cli/output.hpp"

namespace postrider::cli {

struct Finding {
  enum class Level {
    ok,
    note,     ///< worth knowing; nothing is wrong
    skipped,  ///< could not be looked at
    bad,
  };
  std::string name{};
  Level level = Level::ok;
  std::string text{};
  std::string mend{};  ///< the command that mends it, or what to do
};

/// "ok", "note", "skipped"; `bad` is the command's own word: "finding", "violated".
[[nodiscard]] std::string level_text(Finding::Level level, const std::string& bad);

class Findings {
 public:
  void ok(std::string name, std::string text) { add({std::move(name), Finding::Level::ok, std::move(text)}); }
  void note(std::string name, std::string text, std::string mend = {}) {
    add({std::move(name), Finding::Level::note, std::move(text), std::move(mend)});
  }
  void skipped(std::string name, std::string text) {
    add({std::move(name), Finding::Level::skipped, std::move(text)});
  }
  void bad(std::string name, std::string text, std::string mend) {
    add({std::move(name), Finding::Level::bad, std::move(text), std::move(mend)});
  }
  void add(Finding finding) { all_.push_back(std::move(finding)); }
  [[nodiscard]] const std::vector<Finding>& all() const noexcept { return all_; }
  [[nodiscard]] std::size_t bad_ones() const noexcept;

  void print(std::ostream& out, Format format, const std::string& bad) const;

 private:
  std::vector<Finding> all_;
};

}  // namespace postrider::cli
