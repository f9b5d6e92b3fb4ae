// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

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

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

/// What stands where a command's name may stand: one of those below it, or one of its argument's choices.
std::vector<std::string> first_words(const CommandText& command) {
  std::vector<std::string> words;
  for (const CommandText& one : command.commands) words.push_back(one.path.back());
  if (words.empty() && !command.arguments.empty()) words = command.arguments.front().choices;
  return words;
}

/// The lines of a `case "$path $before" in`: for each list of choices the options that have it. `offer` makes
/// what is done of the choices.
template <class Offer>
std::string choices_of_options(const CommandText& program, const Offer& offer) {
  std::map<std::vector<std::string>, std::string> patterns;
  each_command(program, [&](const CommandText& command) {
    for (const OptionText& option : command.options) {
      if (option.choices.empty()) continue;
      for (const std::string& name : option.names) {
        std::string& all = patterns[option.choices];
        all += (all.empty() ? "" : "|") + quoted(command.name() + " " + name);
      }
    }
  });
  std::string lines;
  for (const auto& [choices, pattern] : patterns) {
    lines += "    " + pattern + ") " + offer(joined(choices, " ")) + "; return ;;\n";
  }
  return lines;
}

std::string words_of(const CommandText& command, bool options) {
  if (!options) return joined(first_words(command), " ");
  std::vector<std::string> words;
  for (const OptionText& option : command.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return joined(words, " ");
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
      "  esac\n"
      "  case \"$path $before\" in\n" +
      choices_of_options(program,
                         [](const std::string& words) {
                           return "mapfile -t COMPREPLY < <(compgen -W " + quoted(words) +
                                  " -- \"$current\")";
                         }) +
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
      "  esac\n"
      "  case \"$path ${words[CURRENT-1]}\" in\n" +
      choices_of_options(program, [](const std::string& words) { return "compadd " + words; }) +
      "  esac\n"
      "  case \"$path\" in\n";
  each_command(program, [&](const CommandText& command) {
    text += "    " + quoted(command.name()) + ")\n      commands=(";
    for (const CommandText& one : command.commands) text += item(one.path.back(), one.help);
    if (command.commands.empty()) {
      for (const std::string& word : first_words(command)) text += " " + quoted(word);
    }
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
    if (command.commands.empty() && !first_words(command).empty()) {
      text += at + " -a " + fish(joined(first_words(command), " ")) + "\n";
    }
    for (const OptionText& option : command.options) {
      text += at;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.value.empty()) text += is_file(option) ? " -r -F" : " -x";
      if (!option.choices.empty()) text += " -a " + fish(joined(option.choices, " "));
      text += " -d " + fish(option.help) + "\n";
    }
  });
  return text;
}

}  // namespace postrider::cli
