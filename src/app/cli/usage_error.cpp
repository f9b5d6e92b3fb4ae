// SPDX-License-Identifier: Apache-2.0
#include "app/cli/usage_error.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "app/cli/command_tree.hpp"
#include "core/nearest.hpp"

namespace postrider::cli {
namespace {

/// The command that was given, as far as it was understood.
struct Given {
  const CLI::App* app;
  std::string path;  ///< "outbox list"; empty: none

  [[nodiscard]] std::string name() const { return path.empty() ? "postrider" : "postrider " + path; }
  [[nodiscard]] std::string help_hint() const { return name() + " --help shows what it takes"; }
};

Given given_command(const CLI::App& app) {
  Given given{&app, {}};
  while (!given.app->get_subcommands().empty()) {
    given.app = given.app->get_subcommands().front();
    given.path += (given.path.empty() ? "" : " ") + given.app->get_name();
  }
  return given;
}

std::string nearest_word(const std::string& name, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return std::string(nearest_of(name, views));
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const one : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!one->get_group().empty()) names.push_back(one->get_name());
  }
  return names;
}

const CLI::Option* option_of(const CLI::App& app, std::string_view name) {
  const std::vector<const CLI::Option*> all = app.get_options([](const CLI::Option*) { return true; });
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const CLI::Option* one) { return one->get_name() == name; });
  return found == all.end() ? nullptr : *found;
}

/// "--name", "TYPE"
std::string name_of(const CLI::Option& option) {
  return option.get_positional() ? describe_option(option).value : option.get_name();
}

/// "--name TEXT", "TYPE"
std::string with_value(const CLI::Option& option) {
  const std::string value = describe_option(option).value;
  return option.get_positional() || value.empty() ? name_of(option) : name_of(option) + " " + value;
}

std::string usage_message(const std::string& what, const std::string& why, const std::string& hint) {
  const std::string text = "postrider: " + what + ": " + why;
  return why.find(". Hint: ") != std::string::npos ? text : text + ". Hint: " + hint;
}

/// No command where one is needed, or one that there is not.
std::optional<std::string> missing_command(const Given& given, const std::vector<std::string>& rest) {
  const std::vector<std::string> names = commands_of(*given.app);
  if (names.empty() || given.app->get_require_subcommand_min() == 0) return std::nullopt;
  const std::string all = (names.size() == 1 ? "there is " : "there are ") + CLI::detail::join(names, ", ");
  const bool option_first = !rest.empty() && rest.front().starts_with("-");
  if (option_first && given.path.empty()) return std::nullopt;  // one that there is not
  if (rest.empty() || option_first) {
    return "postrider: " + (given.path.empty() ? "it" : given.name()) + " needs a command. Hint: " + all +
           (option_first ? "; options come behind it" : "");
  }
  return unknown_command_text(*given.app, given.path, rest.front());
}

/// What nobody has taken: an option that there is not, or a word too many. Nothing when all was taken.
std::optional<std::string> left_over(const Given& given, const std::vector<std::string>& rest) {
  if (rest.empty()) return std::nullopt;
  const auto option =
      std::find_if(rest.begin(), rest.end(), [](const std::string& one) { return one.starts_with("-"); });
  const std::string what = "cannot run " + given.name();
  if (option == rest.end()) {
    const std::string meant = nearest_word(rest.front(), commands_of(*given.app));
    return usage_message(
        what, "it does not take '" + rest.front() + "'",
        meant.empty() ? given.help_hint() : "did you mean " + given.path + " " + meant + "?");
  }
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* const one : given.app->get_options([](const CLI::Option*) { return true; })) {
    if (one->get_group().empty()) continue;  // hidden
    for (const std::string& long_name : one->get_lnames()) known.push_back("--" + long_name);
  }
  const std::string meant = name.starts_with("--") ? nearest_word(name, known) : std::string();
  return usage_message(what, "there is no option '" + name + "'",
                       meant.empty() ? given.help_hint() : "did you mean " + meant + "?");
}

/// Those that are required always, and the one that a command has asked for by itself.
std::optional<std::string> missing_options(const Given& given, std::string_view said) {
  std::vector<std::string> names;
  std::vector<std::string> ways;
  for (const CLI::Option* const one : given.app->get_options([](const CLI::Option*) { return true; })) {
    const bool asked_for = one->get_required() || said == one->get_name() + " is required";
    if (!asked_for || one->count() > 0) continue;
    names.push_back(name_of(*one));
    ways.push_back(with_value(*one) +
                   (one->get_envname().empty() ? "" : " (or set " + one->get_envname() + ")"));
  }
  if (names.empty()) return std::nullopt;
  return usage_message("cannot run " + given.name(),
                       CLI::detail::join(names, ", ") + (names.size() == 1 ? " is missing" : " are missing"),
                       "give " + CLI::detail::join(ways, ", "));
}

/// The words of CLI11 about one option, "--limit: 1 required INT missing", as ours.
std::optional<std::string> wrong_value(const Given& given, const CLI::ParseError& error) {
  const std::string_view said = error.what();
  constexpr std::string_view conversion = "Could not convert: ";
  if (said.starts_with(conversion)) {
    const std::string_view rest = said.substr(conversion.size());
    const std::size_t at = rest.find(" = ");
    if (at == std::string_view::npos) return std::nullopt;
    const std::string name(rest.substr(0, at));
    return usage_message("cannot read " + name, "'" + std::string(rest.substr(at + 3)) + "' is no number",
                         given.help_hint());
  }
  constexpr std::string_view excludes = " excludes ";
  if (const std::size_t at = said.find(excludes);
      at != std::string_view::npos && dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    return usage_message("cannot take " + std::string(said.substr(0, at)),
                         std::string(said.substr(at + excludes.size())) + " is there, too",
                         "give one of the two");
  }
  const std::size_t colon = said.find(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string name(said.substr(0, colon));
  const CLI::Option* const option = option_of(*given.app, name);
  if (option == nullptr) return std::nullopt;
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    return usage_message("cannot read " + name, std::string(said.substr(colon + 2)), given.help_hint());
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return std::nullopt;
  return option->count() > 1
             ? usage_message("cannot read " + name,
                             "it is there " + std::to_string(option->count()) + " times", "give it once")
             : usage_message("cannot read " + name, "its value is missing", "give " + with_value(*option));
}

}  // namespace

std::string unknown_command_text(const CLI::App& group, const std::string& path, const std::string& word) {
  const std::vector<std::string> names = commands_of(group);
  const std::string before = path.empty() ? "" : path + " ";
  const std::string meant = nearest_word(word, names);
  return "postrider: there is no command '" + before + word + "'. Hint: " +
         (!meant.empty()       ? "did you mean " + before + meant + "?"
          : names.empty()      ? "postrider " + before + "--help shows what it takes"
          : names.size() == 1U ? "there is " + names.front()
                               : "there are " + CLI::detail::join(names, ", "));
}

std::string usage_text(const CLI::App& app, const CLI::ParseError& error) {
  const Given given = given_command(app);
  const std::vector<std::string> rest = app.remaining(true);
  std::optional<std::string> text;
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    text = missing_command(given, rest);
    // A misspelt name leaves the right one missing; the first is the cause.
    if (!text) text = left_over(given, rest);
    if (!text) text = missing_options(given, error.what());
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    text = left_over(given, rest);
  } else {
    text = wrong_value(given, error);
  }
  return text ? *text : usage_message("cannot understand the command line", error.what(), given.help_hint());
}

}  // namespace postrider::cli
