// SPDX-License-Identifier: Apache-2.0
#include "config/section.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "config/in_quotes.hpp"
#include "core/age.hpp"
#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider::config {
namespace {

constexpr std::size_t largest_secret = 64U << 10U;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

std::string toml_list(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& one : list) out += (out.size() > 1 ? ", " : "") + toml_text(one);
  return out + "]";
}

bool refers(std::string_view text) {
  return text.find("${") != std::string_view::npos;
}

/// The first bytes of a file, one more than a secret may have; nothing when it cannot be read.
std::optional<std::string> beginning_of(const std::string& path) {
  // A pipe would keep us waiting for somebody who writes into it.
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || S_ISFIFO(facts.st_mode)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string content(largest_secret + 1, '\0');
  // A folder can be opened as well.
  if (!file.is_open() || file.read(content.data(), static_cast<std::streamsize>(content.size())).bad())
    return std::nullopt;
  content.resize(static_cast<std::size_t>(file.gcount()));
  return content;
}

/// Of a secret as it was written: its references, and *** for whatever stands around them.
std::string without_secrets(std::string_view written) {
  std::string shown;
  while (!written.empty()) {
    const std::size_t begin = std::min(written.find("${"), written.size());
    if (begin > 0) shown += "***";
    const std::size_t end = written.find('}', begin);
    if (end == std::string_view::npos) break;
    shown += written.substr(begin, end + 1 - begin);
    written.remove_prefix(end + 1);
  }
  return shown;
}

std::size_t fingerprint_of(std::string_view text) {
  return std::hash<std::string_view>{}(text);
}

}  // namespace

std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr std::string_view hex = "0123456789ABCDEF";
      out += "\\u00";
      out += hex[static_cast<unsigned char>(c) >> 4U];
      out += hex[static_cast<unsigned char>(c) & 15U];
    } else {
      out += c;
    }
  }
  return out + '"';
}

Section::Section(Source& source, std::string table) : source_(source), table_(std::move(table)) {
  source_.tables_.insert(table_);
  for (const ConfigTable& one : source_.file_.tables()) {
    if (one.name != table_) continue;
    line_ = one.line;
    given_ = true;
  }
  for (const ConfigValue& value : source_.file_.values()) {
    if (value.table == table_) values_.push_back(&value);
  }
}

std::optional<Section::Found> Section::find(std::string_view name) {
  known_.emplace_back(name);
  const std::string variable = variable_of(table_, name);
  const auto [table, is_new] = source_.tables_of_variables_.emplace(variable, table_);
  if (!is_new && table->second != table_) {
    refuse("",
           "the environment variable " + variable + " would stand for an option of [" + table->second +
               "] as well",
           "choose a name that differs by more than - and _, or upper and lower case");
  }
  if (const auto found = source_.variables_.find(variable); found != source_.variables_.end()) {
    source_.used_variables_.insert(variable);
    given_ = true;
    return Found{found->second, ConfigValue::Kind::text, false, variable, 0};
  }
  for (const ConfigValue* value : values_) {
    if (value->name == name) return Found{value->text, value->kind, true, {}, value->line};
  }
  return std::nullopt;
}

void Section::refuse(const Found& found, std::string_view name, const std::string& wanted) const {
  const std::string what = table_ + "." + std::string(name) + " cannot be " + in_quotes(found.text);
  source_.refused_options_.insert(table_ + "." + std::string(name));
  if (found.from_file) {
    source_.refuse(found.line, what, "it must be " + wanted);
  } else {
    source_.refuse(0, "the environment variable " + found.where + " is refused",
                   what + ": it must be " + wanted);
  }
}

void Section::refuse(std::string_view name, std::string_view why, std::string_view hint) const {
  const std::string option = table_ + (name.empty() ? "" : "." + std::string(name));
  if (source_.unresolved_.contains(table_) || !source_.refused_options_.insert(option).second) return;
  const bool in_array = without_index(table_).size() != table_.size();
  const std::string shown =
      !in_array ? option : (name.empty() ? "" : std::string(name) + " of ") + as_written(table_);
  unsigned line = line_;
  for (const ConfigValue* value : values_) {
    if (without_index(value->name) == name) line = value->line;
  }
  // A table that is not there at all has no line, but it is missing in a file.
  source_.refuse(line, (line == 0 ? source_.file_.name() + ": " : "") + shown + " is refused", why, hint);
}

void Section::note(std::string_view name, std::string value, const std::optional<Found>& found) {
  const std::string in_force = value;
  note(name, std::move(value), found, in_force);
}

void Section::note(std::string_view name, std::string value, const std::optional<Found>& found,
                   std::string_view in_force) {
  const Effective::Origin origin = !found             ? Effective::Origin::standard
                                   : found->from_file ? Effective::Origin::file
                                                      : Effective::Origin::environment;
  const std::string where = !found ? std::string()
                            : found->from_file
                                ? source_.file_.name() + ", line " + std::to_string(found->line)
                                : "the environment variable " + found->where;
  source_.effective_.push_back(
      {table_, std::string(name), std::move(value), origin, where, fingerprint_of(in_force)});
}

std::optional<std::string> Section::expanded(const Found& found, std::string_view name) const {
  const bool resolves = !source_.resolved_ || *source_.resolved_ == table_;
  std::string out;
  std::string_view text = found.text;
  const auto refused = [&](const std::string& why) -> std::optional<std::string> {
    const std::string option = table_ + "." + std::string(name);
    source_.refused_options_.insert(option);
    source_.refuse(found.from_file ? found.line : 0, option + " is refused", why);
    return std::nullopt;
  };
  for (;;) {
    const std::size_t begin = text.find("${");
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    const std::size_t end = text.find('}', begin);
    const std::string_view inside =
        end == std::string_view::npos ? std::string_view() : text.substr(begin + 2, end - begin - 2);
    const bool of_environment = inside.starts_with("env:");
    if (!of_environment && !inside.starts_with("file:")) {
      return refused("'${' must be followed by env:NAME} or file:/path}");
    }
    if (!resolves) {
      source_.unresolved_.insert(table_);
      out += text.substr(begin, end + 1 - begin);
    } else if (of_environment) {
      const std::string variable(inside.substr(4));
      const char* const value = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): at start
      if (value == nullptr) return refused("the environment variable " + in_quotes(variable) + " is not set");
      out += value;
    } else {
      const std::string path(inside.substr(5));
      std::optional<std::string> content = beginning_of(path);
      if (!content) return refused("the file " + in_quotes(path) + " cannot be read");
      if (content->size() > largest_secret) {
        return refused("the file " + in_quotes(path) + " is larger than 64 KiB");
      }
      while (!content->empty() && (content->back() == '\n' || content->back() == '\r')) content->pop_back();
      out += *content;
    }
    text.remove_prefix(end + 1);
  }
}

Section& Section::text(std::string_view name, std::string& target) {
  const std::optional<Found> found = find(name);
  if (found && found->kind != ConfigValue::Kind::text) {
    refuse(*found, name, "a text, in quotes");
  } else if (found) {
    target = expanded(*found, name).value_or(target);
  }
  // What a reference brings may be a secret, also where none is expected.
  note(name, toml_text(found && refers(found->text) ? found->text : target), found, target);
  return *this;
}

Section& Section::secret(std::string_view name, std::string& target) {
  const std::optional<Found> found = find(name);
  if (found && found->kind != ConfigValue::Kind::text) {
    // Not even what is wrong with it is shown.
    refuse(Found{"***", found->kind, found->from_file, found->where, found->line}, name, "a text, in quotes");
  } else if (found) {
    target = expanded(*found, name).value_or(target);
  }
  note(name, toml_text(without_secrets(found ? found->text : target)), found, target);
  return *this;
}

Section& Section::flag(std::string_view name, bool& target) {
  const std::optional<Found> found = find(name);
  if (found) {
    if (found->text != "true" && found->text != "false") {
      refuse(*found, name, "true or false");
    } else {
      target = found->text == "true";
    }
  }
  note(name, target ? "true" : "false", found);
  return *this;
}

std::optional<std::int64_t> Section::whole(const Found& found, std::string_view name, std::int64_t least,
                                           std::int64_t most) const {
  std::int64_t number = 0;
  const char* const end = found.text.data() + found.text.size();
  const auto [stop, error] = std::from_chars(found.text.data(), end, number);
  if (error != std::errc{} || stop != end || number < least || number > most) {
    refuse(found, name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return std::nullopt;
  }
  return number;
}

Section& Section::count(std::string_view name, std::size_t& target, std::size_t least, std::size_t most) {
  const std::optional<Found> found = find(name);
  if (found) {
    const auto number =
        whole(*found, name, static_cast<std::int64_t>(least), static_cast<std::int64_t>(most));
    if (number) target = static_cast<std::size_t>(*number);
  }
  note(name, std::to_string(target), found);
  return *this;
}

Section& Section::number(std::string_view name, int& target, int least, int most) {
  const std::optional<Found> found = find(name);
  if (found) target = static_cast<int>(whole(*found, name, least, most).value_or(target));
  note(name, std::to_string(target), found);
  return *this;
}

Section& Section::time(std::string_view name, Duration& target, Duration unit, Duration least,
                       Duration most) {
  const std::optional<Found> found = find(name);
  const auto up = [&](Duration time) { return (time + unit - Duration{1}) / unit; };
  if (found) {
    if (const auto number = whole(*found, name, up(least), most / unit)) target = unit * *number;
  }
  note(name, std::to_string(target / unit), found);
  return *this;
}

Section& Section::age(std::string_view name, std::optional<Duration>& target) {
  const std::optional<Found> found = find(name);
  if (found && found->kind != ConfigValue::Kind::text) {
    refuse(*found, name, "a time in quotes, as in \"90d\"");
  } else if (found && !found->text.empty()) {
    try {
      target = parse_age(table_ + "." + std::string(name), found->text);
    } catch (const Error&) {
      refuse(*found, name, "a time as in 90d, 12h, 30m or 45s");
    }
  } else if (found) {
    target.reset();
  }
  note(name, target ? toml_text(format_age(*target)) : "\"\"", found);
  return *this;
}

std::optional<Section::Found> Section::take_list(std::string_view name, std::vector<std::string>& target,
                                                 std::vector<std::string>& written) {
  std::optional<Found> found = find(name);
  if (found) {
    if (found->kind != ConfigValue::Kind::text) {
      refuse(*found, name, "a list of texts");
    } else if (const std::optional<std::string> whole = expanded(*found, name)) {
      target = split(*whole);
    }
    written = refers(found->text) ? std::vector<std::string>{found->text} : target;
    return found;
  }
  std::vector<std::string> elements;
  for (const ConfigValue* value : values_) {
    if (value->name == name || without_index(value->name) != name) continue;
    found = Found{value->text, value->kind, true, {}, value->line};
    written.push_back(value->text);
    if (value->kind != ConfigValue::Kind::text) {
      refuse(*found, name, "a list of texts");
    } else {
      elements.push_back(expanded(*found, name).value_or(""));
    }
  }
  if (found) {
    target = std::move(elements);
  } else {
    written = target;
  }
  return found;
}

Section& Section::list(std::string_view name, std::vector<std::string>& target) {
  std::vector<std::string> written;
  const std::optional<Found> found = take_list(name, target, written);
  note(name, toml_list(written), found, toml_list(target));
  return *this;
}

Section& Section::secrets(std::string_view name, std::vector<std::string>& target) {
  std::vector<std::string> written;
  const std::optional<Found> found = take_list(name, target, written);
  for (std::string& one : written) one = without_secrets(one);
  note(name, toml_list(written), found, toml_list(target));
  return *this;
}

std::optional<std::size_t> Section::choose(std::string_view name, std::span<const std::string_view> words,
                                           std::string_view now) {
  const std::optional<Found> found = find(name);
  const std::string wanted(found ? std::string_view(found->text) : now);
  const auto chosen = std::find(words.begin(), words.end(), wanted);
  if (chosen == words.end()) {
    std::string all = "one of";
    for (const std::string_view word : words) all.append(" ").append(word);
    refuse(found.value_or(Found{wanted, ConfigValue::Kind::text, false, {}, 0}), name, all);
    return std::nullopt;
  }
  note(name, toml_text(wanted), found);
  return static_cast<std::size_t>(chosen - words.begin());
}

Section& Section::rest(std::string_view prefix, std::map<std::string, std::string>& target) {
  prefixes_.emplace(prefix);
  for (const ConfigValue* value : values_) {
    if (!value->name.starts_with(prefix)) continue;
    const Found found{value->text, value->kind, true, {}, value->line};
    std::string& one = target[value->name.substr(prefix.size())];
    one = expanded(found, value->name).value_or("");
    // Whether it is a secret is not known here.
    note(value->name, toml_text(without_secrets(found.text)), found, one);
  }
  return *this;
}

void Section::finish() const {
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  std::set<std::string_view> told;  // a list that nobody knows is told of once, not each of its elements
  for (const ConfigValue* value : values_) {
    const bool passed_on = std::any_of(prefixes_.begin(), prefixes_.end(), [&](const std::string& prefix) {
      return value->name.starts_with(prefix);
    });
    if (passed_on || std::find(known.begin(), known.end(), value->name) != known.end()) continue;
    const std::string_view name = without_index(value->name);
    if (name != value->name && std::find(known.begin(), known.end(), name) != known.end()) {
      const bool is_list =
          std::any_of(source_.effective_.begin(), source_.effective_.end(), [&](const Effective& one) {
            return one.table == table_ && one.name == name && one.value.starts_with('[');
          });
      if (is_list) continue;
    }
    if (!told.insert(name).second) continue;
    try {
      source_.file_.refuse_unknown(*value, known);
    } catch (const Error& error) {
      source_.refused_.push_back({value->line, error});
    }
  }
}

}  // namespace postrider::config
