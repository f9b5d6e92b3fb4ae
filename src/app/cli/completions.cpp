// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "app/cli/command_tree.hpp"

namespace postrider::cli {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// For sh, bash and zsh.
std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

/// Values that are files, or one of a few words.
bool is_file(const OptionText& option) {
  return option.value == "FILE" || option.value == "FOLDER";
}

std::string words_of(const CommandText& command, bool options) {
  std::string words;
  if (options) {
    for (const OptionText& option : command.options) {
      for (const std::string& name : option.names) words += (words.empty() ? "" : " ") + name;
    }
  } else {
    for (const CommandText& one : command.commands) words += (words.empty() ? "" : " ") + one.path.back();
  }
  return words;
}

/// The lines of a `case "$path" in` that walks down the tree, one per command that has others below.
std::string steps_down(const CommandText& program) {
  std::string lines;
  each_command(program, [&](const CommandText& command) {
    if (command.path.size() > 1) lines += "      " + quoted(command.name()) + ") path=\"$path $word\" ;;\n";
  });
  return lines;
}

/// All options of the whole program whose values are files.
std::string file_options(const CommandText& program) {
  std::vector<std::string> names;
  each_command(program, [&](const CommandText& command) {
    for (const OptionText& option : command.options) {
      if (is_file(option)) names.insert(names.end(), option.names.begin(), option.names.end());
    }
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "|") + name;
  return text;
}

}  // namespace

std::string bash_completion(const CommandText& program) {
  std::string text =
      "# bash completion of postrider. Made by: postrider completion bash\n"
      "_postrider() {\n"
      "  local word current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path=postrider i\n"
      "  local commands= options=\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    case \"$path $word\" in\n" +
      steps_down(program) +
      "    esac\n"
      "  done\n"
      "  case \"$before\" in\n"
      "    " +
      file_options(program) +
      ") mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); return ;;\n"
      "    -o|--output) mapfile -t COMPREPLY < <(compgen -W 'table json' -- \"$current\"); return ;;\n"
      "  esac\n"
      "  case \"$path\" in\n";
  each_command(program, [&](const CommandText& command) {
    text += "    " + quoted(command.name()) + ") commands=" + quoted(words_of(command, false)) +
            " options=" + quoted(words_of(command, true)) + " ;;\n";
  });
  return text +
         "  esac\n"
         "  if [[ $current == -* || -z $commands ]]; then commands=$options; fi\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$current\")\n"
         "}\n"
         "complete -o default -F _postrider postrider\n";
}

std::string zsh_completion(const CommandText& program) {
  // In lists for _describe a colon parts the word from what is said about it.
  const auto item = [](const std::string& name, const std::string& help) {
    return " " + quoted(replaced(name, ":", "\\:") + ":" + replaced(help, ":", "\\:"));
  };
  std::string text =
      "#compdef postrider\n"
      "# zsh completion of postrider. Made by: postrider completion zsh\n"
      "_postrider() {\n"
      "  local word path=postrider i\n"
      "  local -a commands options\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    word=${words[i]}\n"
      "    case \"$path $word\" in\n" +
      steps_down(program) +
      "    esac\n"
      "  done\n"
      "  case \"${words[CURRENT-1]}\" in\n"
      "    " +
      file_options(program) +
      ") _files; return ;;\n"
      "    -o|--output) compadd table json; return ;;\n"
      "  esac\n"
      "  case \"$path\" in\n";
  each_command(program, [&](const CommandText& command) {
    text += "    " + quoted(command.name()) + ")\n      commands=(";
    for (const CommandText& one : command.commands) text += item(one.path.back(), one.help);
    text += ")\n      options=(";
    for (const OptionText& option : command.options) {
      for (const std::string& name : option.names) text += item(name, option.help);
    }
    text += ")\n      ;;\n";
  });
  return text +
         "  esac\n"
         "  if [[ ${words[CURRENT]} == -* || ${#commands} -eq 0 ]]; then\n"
         "    _describe -o option options || _files\n"
         "  else\n"
         "    _describe command commands\n"
         "  fi\n"
         "}\n"
         "if [[ ${funcstack[1]} == _postrider ]]; then _postrider \"$@\"; else compdef _postrider postrider; "
         "fi\n";
}

std::string fish_completion(const CommandText& program) {
  const auto fish = [](const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
  };
  std::string text =
      "# fish completion of postrider. Made by: postrider completion fish\n"
      "function __postrider_at\n"
      "  set -l path postrider\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$path $word\"\n"
      "      case";
  each_command(program, [&](const CommandText& command) {
    if (command.path.size() > 1) text += " " + fish(command.name());
  });
  text +=
      "\n        set path \"$path $word\"\n"
      "    end\n"
      "  end\n"
      "  test \"$path\" = \"$argv[1]\"\n"
      "end\n"
      "complete -c postrider -f\n";
  each_command(program, [&](const CommandText& command) {
    const std::string at = "complete -c postrider -n " + fish("__postrider_at " + quoted(command.name()));
    for (const CommandText& one : command.commands) {
      text += at + " -a " + one.path.back() + " -d " + fish(one.help) + "\n";
    }
    for (const OptionText& option : command.options) {
      text += at;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.value.empty()) text += is_file(option) ? " -r -F" : " -x";
      if (option.value == "FORMAT" && option.names.front() == "-o") text += " -a 'table json'";
      text += " -d " + fish(option.help) + "\n";
    }
  });
  return text;
}

}  // namespace postrider::cli
