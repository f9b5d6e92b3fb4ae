// SPDX-License-Identifier: Apache-2.0
#include "app/api/error_groups.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace postrider::api {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
/// What an id is made of.
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

std::string longest_part(std::string_view pattern) {
  std::string_view longest;
  while (!pattern.empty()) {
    const std::size_t end = std::min(pattern.find('#'), pattern.size());
    if (end > longest.size()) longest = pattern.substr(0, end);
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
  }
  return std::string(longest);
}

}  // namespace

std::string error_pattern(std::string_view error) {
  std::string pattern;
  for (std::size_t i = 0; i < error.size();) {
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
      group.contains = longest_part(pattern);
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
  return result;
}

}  // namespace postrider::api
