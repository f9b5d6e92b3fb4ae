// SPDX-License-Identifier: Apache-2.0
#include "app/cli/command_tree.hpp"

#include <algorithm>

namespace postrider::cli {
namespace {

/// What a value is called, without what CLI11 adds about checks.
std::string value_of(std::string type) {
  for (const char* const check :
       {":INT in", ":UINT in", ":FLOAT in", ":NONNEGATIVE", ":POSITIVE", ":NUMBER"}) {
    type = type.substr(0, type.find(check));
  }
  if (type == "INT" || type == "UINT" || type == "FLOAT") return "NUMBER";
  return type.empty() ? "VALUE" : type;
}

/// See name_of_choices.
std::vector<std::string> choices_of(CLI::Option& option) {
  const std::string head = name_of_choices({}) + " ";
  try {
    const std::string name = option.get_validator(0)->get_name();
    if (name.starts_with(head)) return CLI::detail::split(name.substr(head.size()), ' ');
  } catch (const CLI::OptionNotFound&) {
    // It has none: it takes what is given.
  }
  return {};
}

CommandText described(CLI::App& app, std::vector<std::string> path) {
  CommandText command{.path = std::move(path), .help = app.get_description()};
  for (CLI::Option* const option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_group().empty()) continue;  // hidden
    OptionText text = describe_option(*option);
    text.choices = choices_of(*option);
    (option->get_positional() ? command.arguments : command.options).push_back(std::move(text));
  }
  for (CLI::App* const one : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (one->get_group().empty()) continue;
    std::vector<std::string> below = command.path;
    below.push_back(one->get_name());
    command.commands.push_back(described(*one, std::move(below)));
  }
  return command;
}

}  // namespace

bool CommandText::has_common() const {
  return std::any_of(options.begin(), options.end(), [](const OptionText& one) { return one.common; });
}

std::string CommandText::name() const {
  std::string all;
  for (const std::string& part : path) all += (all.empty() ? "" : " ") + part;
  return all;
}

std::string CommandText::synopsis() const {
  std::string text = name();
  for (const OptionText& argument : arguments) {
    text += argument.required ? " " + argument.value : " [" + argument.value + "]";
  }
  if (!commands.empty()) text += " COMMAND";
  if (options.size() > 1) text += " [OPTIONS]";  // --help is always there
  return text;
}

OptionText describe_option(const CLI::Option& option) {
  OptionText text{.help = option.get_description(),
                  .standard = option.get_default_str(),
                  .environment = option.get_envname(),
                  .required = option.get_required(),
                  .repeated = option.get_items_expected_max() > 1,
                  .common = option.get_group() == common_options};
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  const bool flag = option.get_expected_min() == 0 || option.get_type_size_max() == 0;
  if (!flag) text.value = value_of(option.get_type_name());
  return text;
}

CommandText describe(CLI::App& app) {
  return described(app, {"postrider"});
}

}  // namespace postrider::cli
