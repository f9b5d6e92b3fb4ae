// SPDX-License-Identifier: Apache-2.0
#include "config/config_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <system_error>
#include <vector>

#include "core/nearest.hpp"
#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace {

/// The parser has met something that it took for impossible.
struct Impossible {};

constexpr void require(bool holds) {
  if (!holds) throw Impossible{};
}

}  // namespace

// The headers alone, in this file alone: nobody has to link it. What the parser takes for granted does not
// hold for every text ("[" at the end of a line): it shall neither end the process nor, in a release build,
// go on all the same.
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#undef NDEBUG
#define TOML_ASSERT(holds) ::require(static_cast<bool>(holds))
#include <toml++/toml.h>

namespace postrider::config {
namespace {

constexpr std::size_t largest_file = 1 << 20;
constexpr std::size_t shown = 100;  // characters of what somebody wrote

std::string quoted(std::string_view text) {
  return "'" + utf8_repaired(utf8_prefix(text, shown)) + "'";
}

std::string joined(const std::string& table, const std::string& name) {
  return table.empty() ? name : table + "." + name;
}

unsigned line_of(const toml::source_region& place) {
  return static_cast<unsigned>(place.begin.line);
}

std::string hint_for(std::string_view nearest) {
  return nearest.empty() ? std::string() : "did you mean " + std::string(nearest) + "?";
}

/// The line that the parser does not get over. It reads from the first one on: as soon as that line is there,
/// it fails.
unsigned impossible_line(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    ends.push_back(at + 1);
  const auto gets_over = [&](std::size_t end) {
    try {
      (void)toml::parse(text.substr(0, end));
    } catch (const toml::parse_error&) {
      return true;  // what is cut off may be missing
    } catch (const Impossible&) {
      return false;
    }
    return true;
  };
  return static_cast<unsigned>(std::partition_point(ends.begin(), ends.end(), gets_over) - ends.begin()) + 1;
}

}  // namespace

/// Walks over what the library has made of the text.
struct ConfigFile::Reader {
  ConfigFile& file;

  void take_table(const toml::table& table, const std::string& path) {
    for (const auto& [key, node] : table) {
      // A value of several lines is where its name is.
      take(node, path, std::string(key.str()), line_of(key.source()));
    }
  }
  void take(const toml::node& node, const std::string& table, const std::string& name, unsigned line) {
    if (const toml::table* const inner = node.as_table()) {
      file.tables_.push_back({joined(table, name), line});
      return take_table(*inner, joined(table, name));
    }
    if (const toml::array* const array = node.as_array()) {
      for (std::size_t i = 0; i < array->size(); ++i) {
        const toml::node& element = *array->get(i);
        take(element, table, name + "[" + std::to_string(i) + "]", line_of(element.source()));
      }
      return;
    }
    ConfigValue value{table, name, ConfigValue::Kind::text, {}, line};
    if (const auto* const text = node.as_string()) {
      value.text = text->get();
    } else if (const auto* const integer = node.as_integer()) {
      value.kind = ConfigValue::Kind::integer;
      value.text = std::to_string(integer->get());
    } else if (const auto* const number = node.as_floating_point()) {
      value.kind = ConfigValue::Kind::number;
      std::array<char, 64> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number->get());
      value.text.assign(digits.data(), end.ptr);
    } else if (const auto* const flag = node.as_boolean()) {
      value.kind = ConfigValue::Kind::flag;
      value.text = flag->get() ? "true" : "false";
    } else {
      file.refuse(line, joined(table, name) + " is a date or a time", "no option is one");
    }
    file.values_.push_back(std::move(value));
  }
};

ConfigFile ConfigFile::read(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text(largest_file + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad() || (in.fail() && !in.eof())) {
    throw Error(ErrorCode::unavailable, "cannot read " + path,
                errno != 0 ? std::generic_category().message(errno) : "reading failed");
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return parse(text, path);
}

ConfigFile ConfigFile::parse(std::string_view text, std::string name) {
  ConfigFile file(std::move(name));
  if (text.size() > largest_file) {
    throw Error(ErrorCode::invalid_argument, file.name_ + " is refused", "it is larger than 1 MiB");
  }
  try {
    const toml::table table = toml::parse(text);
    Reader{file}.take_table(table, "");
  } catch (const toml::parse_error& error) {
    file.refuse(line_of(error.source()), "column " + std::to_string(error.source().begin.column) + ": " +
                                             utf8_repaired(error.description()));
  } catch (const Impossible&) {
    file.refuse(impossible_line(text), "this is no TOML", "the parser cannot make anything of it",
                "a table's name stands between its brackets, on one line: [storage]");
  }
  const auto by_line = [](const auto& a, const auto& b) { return a.line < b.line; };
  std::stable_sort(file.values_.begin(), file.values_.end(), by_line);
  std::stable_sort(file.tables_.begin(), file.tables_.end(), by_line);
  return file;
}

void ConfigFile::refuse(unsigned line, std::string_view what, std::string_view why,
                        std::string_view hint) const {
  throw Error(ErrorCode::invalid_argument,
              name_ + ", line " + std::to_string(line) + ": " + std::string(what), why, hint);
}

void ConfigFile::refuse_unknown(const ConfigValue& value, std::span<const std::string_view> known) const {
  const std::string where = value.table.empty() ? std::string() : " in [" + value.table + "]";
  refuse(value.line, "there is no option " + quoted(value.name) + where, {},
         hint_for(nearest_of(value.name, known)));
}

void ConfigFile::refuse_unknown(const ConfigTable& table, std::span<const std::string_view> known) const {
  refuse(table.line, "there is no table " + quoted(table.name), {}, hint_for(nearest_of(table.name, known)));
}

}  // namespace postrider::config
