// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "config/section.hpp"
#include "core/nearest.hpp"
#include "core/without_prefix.hpp"

namespace postrider::config {
namespace {

constexpr std::string_view variable_prefix = "POSTRIDER_";
constexpr std::size_t most_shown = 20;  // of what is refused

}  // namespace

void throw_all(const std::string& what, std::span<const Error> errors) {
  if (errors.empty()) return;
  if (errors.size() == 1) throw errors.front();
  std::string all = what + " for " + std::to_string(errors.size()) + " reasons:";
  for (const Error& error : errors.first(std::min(errors.size(), most_shown))) {
    all.append("\n  ").append(without_prefix(error.what()));
  }
  if (errors.size() > most_shown) all += "\n  and " + std::to_string(errors.size() - most_shown) + " more";
  throw Error(errors.front().code(), all);
}

std::string variable_of(std::string_view table, std::string_view name) {
  std::string variable(variable_prefix);
  const auto add = [&](std::string_view part) {
    for (const char c : part) {
      variable += std::isalnum(static_cast<unsigned char>(c)) != 0
                      ? static_cast<char>(std::toupper(static_cast<unsigned char>(c)))
                      : '_';
    }
  };
  add(table);
  variable += '_';
  add(name);
  return variable;
}

Source::Source(ConfigFile file, const char* const* environment) : file_(std::move(file)) {
  if (environment == nullptr) environment = ::environ;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos || !variable.starts_with(variable_prefix)) continue;
    const std::string name(variable.substr(0, equals));
    variables_.emplace(name, variable.substr(equals + 1));
  }
}

std::vector<std::string> Source::tables_below(const std::string& table) const {
  std::vector<std::string> names;
  const std::string prefix = table + ".";
  for (const ConfigTable& one : file_.tables()) {
    if (!one.name.starts_with(prefix)) continue;
    const std::string name = one.name.substr(prefix.size());
    const std::string first = name.substr(0, std::min(name.find('.'), name.size()));
    if (std::find(names.begin(), names.end(), first) == names.end()) names.push_back(first);
  }
  return names;
}

std::size_t Source::elements_of(const std::string& table) {
  arrays_.insert(table);
  std::size_t count = 0;
  const auto exists = [&](const std::string& name) {
    return std::any_of(file_.tables().begin(), file_.tables().end(),
                       [&](const ConfigTable& one) { return one.name == name; });
  };
  while (exists(table + "[" + std::to_string(count) + "]")) ++count;
  return count;
}

void Source::refuse(unsigned line, const std::string& what, std::string_view why, std::string_view hint) {
  try {
    if (line != 0) file_.refuse(line, what, why, hint);
    throw Error(ErrorCode::invalid_argument, what, why, hint);
  } catch (const Error& error) {
    refused_.push_back({line, error});
  }
}

void Source::refuse_unknown_tables() {
  std::vector<std::string> names(tables_.begin(), tables_.end());
  for (const std::string& array : arrays_) names.push_back(array + "[0]");  // there may be none yet
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto is_way = [&](const std::string& table) {
    return std::any_of(tables_.begin(), tables_.end(),
                       [&](const std::string& read) { return read.starts_with(table + "."); });
  };
  std::string unknown;  // what is below it is not told as well
  for (const ConfigTable& table : file_.tables()) {
    if (is_way(table.name) || tables_.contains(table.name)) continue;
    if (!unknown.empty() && table.name.starts_with(unknown + ".")) continue;
    unknown = table.name;
    try {
      file_.refuse_unknown(table, known);
    } catch (const Error& error) {
      refused_.push_back({table.line, error});
    }
  }
  for (const ConfigValue& value : file_.values()) {
    const bool stands_outside = value.table.empty() || is_way(value.table);
    if (tables_.contains(value.table) || !stands_outside) continue;
    refuse(value.line, value.name + " stands outside of every table that is known",
           "options belong into a table", "write [storage] above it, or whichever it is of");
  }
}

void Source::refuse_unknown_variables() {
  for (const auto& [name, value] : variables_) {
    if (used_variables_.contains(name)) continue;
    // Others may use the prefix for what is theirs; what begins like a table of ours is meant for us.
    const bool meant =
        std::any_of(tables_.begin(), tables_.end(), [&variable = name](const std::string& table) {
          return variable.starts_with(variable_of(table.substr(0, table.find_first_of(".[")), ""));
        });
    if (!meant) continue;
    std::vector<std::string> names;
    for (const Effective& one : effective_) names.push_back(variable_of(one.table, one.name));
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view nearest = nearest_of(name, views);
    refuse(
        0, "the environment variable " + name + " is refused", "there is no option of that name",
        nearest.empty() ? "postrider config print lists them" : "did you mean " + std::string(nearest) + "?");
  }
}

void Source::finish() {
  refuse_unknown_tables();
  refuse_unknown_variables();
  // What stands in no line comes last: it may be missing because of what is misspelt in one.
  std::stable_sort(refused_.begin(), refused_.end(),
                   [](const Refused& a, const Refused& b) { return a.line - 1 < b.line - 1; });
  std::vector<Error> errors;
  for (const Refused& one : refused_) errors.push_back(one.error);
  throw_all(file_.name() + " is refused", errors);
}

}  // namespace postrider::config
