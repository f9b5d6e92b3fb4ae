// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config_file.hpp"
#include "postrider/clock.hpp"
#include "postrider/error.hpp"

namespace postrider::config {

/// An option as it is in force, for `postrider config print`.
struct Effective {
  enum class Origin { standard, file, environment };
  std::string table;
  std::string name;
  /// As TOML. What came from ${env:…} or ${file:…} is shown as the reference, whatever option it is in; the
  /// rest of a secret is ***.
  std::string value;
  Origin origin;
  std::string where{};          ///< "shop.toml, line 7", or its variable; empty for the default
  std::size_t fingerprint = 0;  ///< of what is in force, secrets too: whether it has changed
};

/// As TOML, and JSON, write a text.
[[nodiscard]] std::string toml_text(std::string_view text);

/// POSTRIDER_SINKS_EVENTS_KAFKA_BROKERS for "sinks.events-kafka" and "brokers".
[[nodiscard]] std::string variable_of(std::string_view table, std::string_view name);

/// Throws the one error as it is, and of several "<what> for 2 reasons:" with a line for each, of the first
/// one's code. Nothing when there is none.
void throw_all(const std::string& what, std::span<const Error> errors);

/// What the tables of one configuration are read from and noted in. What is wrong with them is gathered, and
/// thrown by `finish`.
class Source {
 public:
  /// `environment` as main gets it; null: the process's own.
  Source(ConfigFile file, const char* const* environment);

  [[nodiscard]] const ConfigFile& file() const noexcept { return file_; }
  [[nodiscard]] const std::vector<Effective>& effective() const noexcept { return effective_; }
  /// The names of the tables right below this one, in the order of the file: "wallet-events" of
  /// [relay.topics.wallet-events] below "relay.topics".
  [[nodiscard]] std::vector<std::string> tables_below(const std::string& table) const;
  /// How many tables [[table]] has.
  [[nodiscard]] std::size_t elements_of(const std::string& table);
  /// References (`${env:NAME}`, `${file:/path}`) in other tables stay as they are written: their secrets are
  /// not this reader's. What a table says by them is not judged.
  void resolve_only(std::string table) { resolved_ = std::move(table); }
  /// Throws Error(invalid_argument) that says what was refused so far, and besides every table that nobody
  /// has read, and every variable POSTRIDER_<TABLE>_… that names no option of it.
  void finish();

 private:
  friend class Section;
  struct Refused {
    unsigned line;  ///< 0: it stands in no line
    Error error;
  };
  void refuse(unsigned line, const std::string& what, std::string_view why = {}, std::string_view hint = {});
  void refuse_unknown_tables();
  void refuse_unknown_variables();

  ConfigFile file_;
  std::map<std::string, std::string> variables_;  // POSTRIDER_…
  std::set<std::string> used_variables_;
  std::map<std::string, std::string> tables_of_variables_;  // of all options that were named
  std::set<std::string> tables_;                            // that were read
  std::set<std::string> arrays_;                            // that were asked for
  std::vector<Effective> effective_;
  std::optional<std::string> resolved_;  // the only table whose references are resolved
  std::set<std::string> unresolved_;     // tables that have others
  std::vector<Refused> refused_;
  std::set<std::string> refused_options_;  // "storage.url": one reason is enough
};

/// One table. Name an option, and it is looked for, checked, noted, and known from then on; what is left over
/// in the table is refused by `finish`, with the nearest of the names. A variable POSTRIDER_<TABLE>_<NAME>
/// counts more than the file; texts may take `${env:NAME}` and `${file:/path}` in.
///
/// What is wrong is told to the source, with the line or the variable; the target then stays as it was.
class Section {
 public:
  Section(Source& source, std::string table);

  Section& text(std::string_view name, std::string& target);
  /// Never shown, but for the references in it.
  Section& secret(std::string_view name, std::string& target);
  Section& flag(std::string_view name, bool& target);
  Section& count(std::string_view name, std::size_t& target, std::size_t least, std::size_t most);
  Section& number(std::string_view name, int& target, int least, int most);
  /// `name` ends in -ms, -seconds, and so says its unit.
  Section& time(std::string_view name, Duration& target, Duration unit, Duration least, Duration most);
  /// "90d", "12h"; empty: not set.
  Section& age(std::string_view name, std::optional<Duration>& target);
  /// A list of texts; in a variable, and where there is one alone: separated by commas.
  Section& list(std::string_view name, std::vector<std::string>& target);
  /// The same, never shown.
  Section& secrets(std::string_view name, std::vector<std::string>& target);
  /// One of these words.
  template <class T>
  Section& word(std::string_view name, T& target, std::span<const std::pair<std::string_view, T>> words) {
    std::vector<std::string_view> names;
    std::string_view now;
    for (const auto& [text, meaning] : words) {
      names.push_back(text);
      if (meaning == target) now = text;
    }
    if (const std::optional<std::size_t> chosen = choose(name, names, now)) target = words[*chosen].second;
    return *this;
  }
  /// All options of the table that begin with `prefix`, without it: for what is passed on to a library.
  Section& rest(std::string_view prefix, std::map<std::string, std::string>& target);

  /// Whether the file has the table, or the environment an option of it. After the options were named.
  [[nodiscard]] bool given() const noexcept { return given_; }
  [[nodiscard]] const std::string& table() const noexcept { return table_; }
  /// The value of this name, or the table, is refused: for what depends on several of them.
  void refuse(std::string_view name, std::string_view why, std::string_view hint = {}) const;
  void finish() const;

 private:
  struct Found {
    std::string text;
    ConfigValue::Kind kind;
    bool from_file;
    std::string where;  ///< the variable's name, when it is not from the file
    unsigned line;
  };
  [[nodiscard]] std::optional<Found> find(std::string_view name);
  void refuse(const Found& found, std::string_view name, const std::string& wanted) const;
  [[nodiscard]] std::optional<std::int64_t> whole(const Found& found, std::string_view name,
                                                  std::int64_t least, std::int64_t most) const;
  [[nodiscard]] std::optional<std::size_t> choose(std::string_view name,
                                                  std::span<const std::string_view> words,
                                                  std::string_view now);
  /// `written` is what stands in file or environment, unless that says no more than `target`.
  std::optional<Found> take_list(std::string_view name, std::vector<std::string>& target,
                                 std::vector<std::string>& written);
  void note(std::string_view name, std::string value, const std::optional<Found>& found);
  void note(std::string_view name, std::string value, const std::optional<Found>& found,
            std::string_view in_force);
  /// Nothing when it was refused.
  [[nodiscard]] std::optional<std::string> expanded(const Found& found, std::string_view name) const;

  Source& source_;
  const std::string table_;
  std::vector<const ConfigValue*> values_;
  std::vector<std::string> known_;
  std::set<std::string> prefixes_;
  unsigned line_ = 0;
  bool given_ = false;
};

}  // namespace postrider::config
