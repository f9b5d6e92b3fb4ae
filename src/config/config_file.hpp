// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace postrider::config {

/// One value of a file, wherever it stood in it.
struct ConfigValue {
  enum class Kind { text, integer, number, flag };

  std::string table{};  ///< "eventlog.async"; elements of arrays have their number: "topics[0]"
  std::string name{};   ///< "batch-size", "hosts[1]"
  Kind kind = Kind::text;
  std::string text{};  ///< as one would write it into an environment variable: 50, 0.5, true, ./spill
  unsigned line = 0;
};

struct ConfigTable {
  std::string name{};
  unsigned line = 0;
};

/// A TOML file, as a flat list of its values with their lines. The one place that knows the TOML library.
///
/// Who reads options from it refuses what is wrong with `refuse` and what is unknown with `refuse_unknown`:
/// both throw Error(invalid_argument) whose message begins with the file and the line.
class ConfigFile {
 public:
  /// Throws Error: unavailable when the file cannot be read, invalid_argument when it is no TOML (with the
  /// line and the column), has a date, or is larger than 1 MiB.
  [[nodiscard]] static ConfigFile read(const std::string& path);
  /// The same for a text; `name` stands for the file in messages.
  [[nodiscard]] static ConfigFile parse(std::string_view text, std::string name);

  /// The file, as messages name it.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// In the order of the file.
  [[nodiscard]] const std::vector<ConfigValue>& values() const noexcept { return values_; }
  /// Every table, also one without values; a table that is only the way to another one ("eventlog" of
  /// [eventlog.async]) too.
  [[nodiscard]] const std::vector<ConfigTable>& tables() const noexcept { return tables_; }

  /// "shop.toml, line 7: <what>: <why>. Hint: <hint>".
  [[noreturn]] void refuse(unsigned line, std::string_view what, std::string_view why = {},
                           std::string_view hint = {}) const;
  /// There is no such option, and the nearest one that there is.
  [[noreturn]] void refuse_unknown(const ConfigValue& value, std::span<const std::string_view> known) const;
  /// There is no such table.
  [[noreturn]] void refuse_unknown(const ConfigTable& table, std::span<const std::string_view> known) const;

 private:
  explicit ConfigFile(std::string name) : name_(std::move(name)) {}
  struct Reader;

  std::string name_;
  std::vector<ConfigValue> values_;
  std::vector<ConfigTable> tables_;
};

}  // namespace postrider::config
