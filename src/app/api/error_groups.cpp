// SPDX-License-Identifier: Apache-2.0
#include "app/api/error_groups.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"

namespace postrider::api {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
/// What an id is made of.
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/// What stands between the marks, the longest first.
std::vector<std::string_view> parts_of(std::string_view pattern) {
  std::vector<std::string_view> parts;
  while (!pattern.empty()) {
    const std::size_t end = std::min(pattern.find('#'), pattern.size());
    if (end > 0) parts.push_back(pattern.substr(0, end));
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](std::string_view a, std::string_view b) { return a.size() > b.size(); });
  return parts;
}

std::string part_to_select(const ErrorGroup& group, const std::vector<ErrorGroup>& all) {
  const std::vector<std::string_view> parts = parts_of(group.pattern);
  if (parts.empty()) return {};
  const auto own = std::find_if(parts.begin(), parts.end(), [&](std::string_view part) {
    return std::none_of(all.begin(), all.end(), [&](const ErrorGroup& other) {
      return &other != &group && other.type == group.type && other.pattern.find(part) != std::string::npos;
    });
  });
  return std::string(own == parts.end() ? parts.front() : *own);
}

/// Of the text from here on so much is the same for all events, although it has digits: the host of an
/// address (what comes before it says so), or a status of HTTP.
std::size_t length_of_constant(std::string_view before, std::string_view text) {
  if (before.ends_with("://")) {
    return std::min(text.find_first_of(" /?#,;'\")"), text.size());
  }
  constexpr std::size_t status = 3;
  const bool digits = text.size() >= status && std::all_of(text.begin(), text.begin() + status, is_digit) &&
                      (text.size() == status || !is_word(text[status]));
  return digits && before.ends_with("HTTP ") ? status : 0;
}

}  // namespace

std::string error_pattern(std::string_view error) {
  std::string pattern;
  for (std::size_t i = 0; i < error.size();) {
    const std::size_t same = length_of_constant(error.substr(0, i), error.substr(i));
    pattern += error.substr(i, same);
    i += same;
    if (same > 0) continue;
    std::size_t end = i;
    while (end < error.size() && is_word(error[end])) ++end;
    if (end == i) {
      pattern += error[i++];
      continue;
    }
    const std::string_view word = error.substr(i, end - i);
    if (std::any_of(word.begin(), word.end(), is_digit)) {
      if (!pattern.ends_with('#')) pattern += '#';
    } else {
      pattern += word;
    }
    i = end;
  }
  return pattern;
}

ErrorGroups group_errors(const std::vector<DeadError>& errors, std::size_t most) {
  std::map<std::pair<std::string, std::string>, ErrorGroup> found;  // at most one per error
  for (const DeadError& error : errors) {
    std::string pattern = error_pattern(error.error);
    auto [at, added] = found.try_emplace({error.type, pattern});
    ErrorGroup& group = at->second;
    if (added) {
      group.type = error.type;
      group.pattern = std::move(pattern);
      group.last = error.died_at;
      group.example = error.id;
    }
    ++group.events;
    group.first = error.died_at;
  }
  ErrorGroups result;
  for (auto& [key, group] : found) result.groups.push_back(std::move(group));
  std::stable_sort(result.groups.begin(), result.groups.end(),
                   [](const ErrorGroup& a, const ErrorGroup& b) { return a.events > b.events; });
  for (std::size_t i = most; i < result.groups.size(); ++i) result.others += result.groups[i].events;
  if (result.groups.size() > most) result.groups.resize(most);
  for (ErrorGroup& group : result.groups) group.contains = part_to_select(group, result.groups);
  return result;
}

boost::json::object group_json(const ErrorGroup& group) {
  boost::json::object filter{{"type", shown(group.type)}};
  if (!group.contains.empty()) filter["errorContains"] = shown(group.contains);
  return {{"type", shown(group.type)},
          {"error", shown(group.pattern)},
          {"events", group.events},
          {"firstDiedAt", time_text(group.first)},
          {"lastDiedAt", time_text(group.last)},
          {"exampleId", group.example.view()},
          {"filter", std::move(filter)}};
}

}  // namespace postrider::api
