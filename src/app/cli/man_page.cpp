// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "app/cli/command_tree.hpp"
#include "app/cli/exit_codes.hpp"

namespace postrider::cli {
namespace {

/// Text as roff takes it: nothing of it is a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\n') {
      out += "\n.br\n";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text) + "\\fR";
}
std::string italic(std::string_view text) {
  return "\\fI" + roff(text) + "\\fR";
}

/// "-c, --config FILE", each part written as `name` and `value` say.
template <class Name, class Val>
std::string head_of(const OptionText& option, const Name& name, const Val& value) {
  std::string head;
  for (const std::string& one : option.names) head += (head.empty() ? "" : ", ") + name(one);
  if (!option.value.empty()) head += (head.empty() ? "" : " ") + value(option.value);
  return head;
}

std::string help_of(const OptionText& option) {
  std::string text = option.help;
  if (option.required) text += " (required)";
  if (!option.standard.empty()) text += " [" + option.standard + "]";
  if (!option.environment.empty()) text += " (or " + option.environment + ")";
  return text;
}

bool is_help(const OptionText& option) {
  return !option.names.empty() && option.names.back() == "--help";
}

/// The options that many commands have alike, as they are in the first of them.
std::vector<OptionText> common_of(const CommandText& program) {
  std::vector<OptionText> common;
  each_command(program, [&](const CommandText& command) {
    if (!common.empty()) return;
    for (const OptionText& option : command.options) {
      if (option.common) common.push_back(option);
    }
  });
  return common;
}

std::string options_roff(const std::vector<OptionText>& options, bool common = false) {
  std::string text;
  for (const OptionText& option : options) {
    if (option.common != common || is_help(option)) continue;
    text += ".TP\n" + head_of(option, bold, italic) + "\n" + roff(help_of(option)) + "\n";
  }
  return text;
}

template <class Codes>
std::string codes_roff(const Codes& codes) {
  std::string text;
  for (const ExitCode& one : codes) {
    text += ".TP\n" + bold(std::to_string(one.code)) + "\n" + roff(one.meaning) + "\n";
  }
  return text;
}

std::string environment_roff(const CommandText& program) {
  std::map<std::string, std::string> variables{
      {"NO_COLOR", "No colours, whatever standard output is."},
      {"POSTRIDER_TABLE_OPTION",
       "Of serve: an option of the configuration, for example POSTRIDER_SERVER_LISTEN."}};
  each_command(program, [&](const CommandText& command) {
    for (const OptionText& option : command.options) {
      if (!option.environment.empty()) variables[option.environment] = option.help + ".";
    }
  });
  std::string text;
  for (const auto& [name, help] : variables) text += ".TP\n" + bold(name) + "\n" + roff(help) + "\n";
  return text;
}

/// In a table of Markdown a bar would end the cell.
std::string markdown(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string plain(const std::string& text) {
  return text;
}

}  // namespace

std::string man_page(const CommandText& program, const std::string& version) {
  std::string text =
      ".TH POSTRIDER 1 \"\" \"" + roff(version) +
      "\" \"Postrider\"\n.nh\n.ad l\n.SH NAME\npostrider \\- durable events, on the database you already "
      "have\n.SH SYNOPSIS\n" +
      bold("postrider") + " " + italic("COMMAND") + " [" + italic("OPTIONS") + "]\n.SH DESCRIPTION\n" +
      roff(
          "Runs the relay, the outbox, the APIs and the dashboard (serve), and looks after the databases "
          "that they work on. Commands that look into a database take it from --storage, from the "
          "configuration that -c names, or from the environment. They answer with tables, or with JSON "
          "(-o json).") +
      "\n.SH COMMANDS\n";
  each_command(program, [&](const CommandText& command) {
    if (command.path.size() < 2) return;
    text += ".SS " + roff(command.synopsis()) + "\n" + roff(command.help) + ".\n";
    text += options_roff(command.arguments);
    text += options_roff(command.options);
    if (command.has_common()) text += ".PP\nAnd the common options.\n";
  });
  return text + ".SH COMMON OPTIONS\n" + options_roff(common_of(program), true) + ".TP\n" + bold("-h") +
         ", " + bold("--help") + "\n" + roff("What the command takes.") + "\n.SH EXIT STATUS\n" +
         codes_roff(exit_codes) + ".PP\n" + roff("Of postrider check:") + "\n" +
         codes_roff(check_exit_codes) + ".SH ENVIRONMENT\n" + environment_roff(program);
}

std::string reference(const CommandText& program) {
  std::string text;
  const auto rows = [&](const std::vector<OptionText>& options, bool common) {
    std::string some;
    for (const OptionText& option : options) {
      if (option.common != common || is_help(option)) continue;
      some += "| `" + markdown(head_of(option, plain, plain)) + "` | " + markdown(help_of(option)) + " |\n";
    }
    return some;
  };
  const std::string head = "\n| | |\n|---|---|\n";
  text += "\n### Common options\n" + head + rows(common_of(program), true);
  each_command(program, [&](const CommandText& command) {
    if (command.path.size() < 2) return;
    text +=
        (command.path.size() == 2 ? "\n### " : "\n#### ") + command.name() + "\n\n" + command.help + ".\n";
    const std::string own = rows(command.arguments, false) + rows(command.options, false);
    if (!command.commands.empty() && own.empty()) return;
    text += "\n```text\n" + command.synopsis() + "\n```\n";
    if (!own.empty()) text += head + own;
    if (command.has_common()) text += "\nAnd the common options.\n";
  });
  const auto codes = [&](const auto& list) {
    text += head;
    for (const ExitCode& one : list)
      text += "| " + std::to_string(one.code) + " | " + std::string(one.meaning) + " |\n";
  };
  text += "\n### Exit codes\n";
  codes(exit_codes);
  text += "\nOf `postrider check`:\n";
  codes(check_exit_codes);
  return text;
}

}  // namespace postrider::cli
