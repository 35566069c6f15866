#include <functional>

#include "base/text.h"
#include "cli/command/command.h"

namespace muster::cli {

namespace {

/// Makes the shell statement that offers the words allowed at a place.
using OfferStatement =
    std::function<std::string(Offer kind, const std::vector<std::string>& choices)>;

}  // namespace

namespace {

std::string below(const std::string& at, const Command& child) {
  return at.empty() ? child.name : at + " " + child.name;
}

void collect(const Command& command, const std::string& at, std::vector<CommandPlace>& places) {
  places.push_back({at, &command});
  for (const Command& child : command.commands) collect(child, below(at, child), places);
}

}  // namespace

std::vector<CommandPlace> places_in(const Command& root) {
  std::vector<CommandPlace> places;
  collect(root, "", places);
  return places;
}

std::vector<Step> steps_in(const Command& root) {
  std::vector<Step> steps;
  for (const auto& [at, command] : places_in(root)) {
    for (const Command& child : command->commands) {
      steps.push_back({at, child.name, below(at, child)});
      if (!child.alias.empty()) steps.push_back({at, child.alias, below(at, child)});
      for (const std::string& alias : child.more_aliases) {
        steps.push_back({at, alias, below(at, child)});
      }
    }
  }
  return steps;
}

const char* names_command(Offer offer) {
  switch (offer) {
    case Offer::kJobs:
      return "list --limit 1000 --output names";
    case Offer::kProjects:
      return "project list --output names";
    case Offer::kNodes:
      return "node list --output names";
    case Offer::kContexts:
      return "context list --output names";
    case Offer::kUsers:
      return "user list --output names";
    case Offer::kTokens:
      return "token list --output names";
    default:
      return nullptr;
  }
}

using base::shell_quoted;

namespace {

std::string pattern(const std::string& at, const std::string& word) {
  return shell_quoted(at + ":" + word);
}

}  // namespace

/// A case for each step of the tree: the words "at:word" lead to a new "at".
std::string step_cases(const Command& root) {
  std::string text;
  for (const Step& step : steps_in(root)) {
    text += "      " + pattern(step.at, step.word) + ") at=" + shell_quoted(step.to) + " ;;\n";
  }
  return text;
}

/// A case for each flag that takes a value: it offers the values and returns.
std::string value_cases(const Command& root, const OfferStatement& offer) {
  std::string text;
  for (const auto& [at, command] : places_in(root)) {
    for (const Flag& flag : command->flags) {
      if (flag.is_switch() || flag.hidden) continue;
      text += "    " + pattern(at, flag.name);
      if (!flag.letter.empty()) text += "|" + pattern(at, flag.letter);
      text += ") " + offer(flag.offer, flag.choices) + "; return ;;\n";
    }
  }
  return text;
}

namespace {

/// The statement that fills COMPREPLY with the words allowed at a place.
std::string bash_offer(Offer kind, const std::vector<std::string>& choices) {
  const auto compgen = [](const std::string& what) {
    return "COMPREPLY=($(compgen " + what + " -- \"$cur\"))";
  };
  switch (kind) {
    case Offer::kChoices:
      return compgen("-W " + shell_quoted(base::joined(choices, " ")));
    case Offer::kFiles:
      return "compopt -o filenames; " + compgen("-f");
    case Offer::kFolders:
      return "compopt -o filenames; " + compgen("-d");
    case Offer::kVariables:
      return compgen("-v");
    case Offer::kJobs:
    case Offer::kProjects:
    case Offer::kNodes:
    case Offer::kContexts:
    case Offer::kUsers:
    case Offer::kTokens:
      return compgen("-W \"$(\"$1\" " + std::string(names_command(kind)) + " 2>/dev/null)\"");
    case Offer::kNothing:
      return ":";
  }
  return ":";
}

std::string flag_cases(const Command& root) {
  std::string text;
  for (const auto& [at, command] : places_in(root)) {
    text += "      " + shell_quoted(at) + ") " + bash_offer(Offer::kChoices, flag_names(*command)) +
            " ;;\n";
  }
  return text;
}

std::string bash_word_cases(const Command& root) {
  std::string text;
  for (const auto& [at, command] : places_in(root)) {
    const Positionals& positionals = command->positionals;
    const std::string words = command->commands.empty()
                                  ? bash_offer(positionals.offer, positionals.choices)
                                  : bash_offer(Offer::kChoices, command_names(*command));
    text += "    " + shell_quoted(at) + ") " + words + " ;;\n";
  }
  return text;
}

}  // namespace

std::string bash_completion(const Command& root) {
  return R"(# bash completion of muster; to use it: source <(muster completion bash)
_muster() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" at="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ "${COMP_WORDS[i]}" == -- ]]; then
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      else
        compopt -o filenames
        COMPREPLY=($(compgen -c -f -- "$cur"))
      fi
      return
    fi
    case "$at:${COMP_WORDS[i]}" in
)" + step_cases(root) +
         R"(    esac
  done
  case "$at:$prev" in
)" + value_cases(root, bash_offer) +
         R"(  esac
  if [[ "$cur" == -* ]]; then
    case "$at" in
)" + flag_cases(root) +
         R"(    esac
    return
  fi
  case "$at" in
)" + bash_word_cases(root) +
         R"(  esac
}
complete -F _muster muster
)";
}

namespace {

std::string zsh_offer(Offer kind, const std::vector<std::string>& choices) {
  switch (kind) {
    case Offer::kChoices: {
      std::string text = "compadd --";
      for (const std::string& choice : choices) text += " " + choice;
      return text;
    }
    case Offer::kFiles:
      return "_files";
    case Offer::kFolders:
      return "_files -/";
    case Offer::kVariables:
      return "_parameters -g '*export*'";
    case Offer::kJobs:
    case Offer::kProjects:
    case Offer::kNodes:
    case Offer::kContexts:
    case Offer::kUsers:
    case Offer::kTokens:
      return "compadd -- ${(f)\"$(\"${words[1]}\" " + std::string(names_command(kind)) +
             " 2>/dev/null)\"}";
    case Offer::kNothing:
      return ":";
  }
  return ":";
}

/// An entry of _describe: the word, a colon, its description.
std::string described(const std::string& word, const std::string& help) {
  return " " + shell_quoted(word + ":" + help);
}

std::string zsh_word_cases(const Command& root) {
  std::string text;
  for (const auto& [at, command] : places_in(root)) {
    text += "    (" + shell_quoted(at) + ")\n      entries=(";
    for (const Flag& flag : command->flags) {
      if (!flag.hidden) text += described(flag.name, flag.help);
    }
    text += " )\n      [[ ${words[CURRENT]} == -* ]] && _describe -o flag entries && return\n";
    if (command->commands.empty()) {
      const Positionals& positionals = command->positionals;
      text += "      " + zsh_offer(positionals.offer, positionals.choices) + " ;;\n";
      continue;
    }
    text += "      entries=(";
    for (const Command& child : command->commands) text += described(child.name, child.help);
    text += " )\n      _describe command entries ;;\n";
  }
  return text;
}

}  // namespace

// "path" and "words" are zsh's own variables: "path" is tied to PATH, "words" is the command line.
std::string zsh_completion(const Command& root) {
  return R"(#compdef muster
# zsh completion of muster; to use it: source <(muster completion zsh)
_muster() {
  local at="" i
  local -a entries
  for ((i = 2; i < CURRENT; i++)); do
    if [[ ${words[i]} == -- ]]; then
      shift $i words
      ((CURRENT -= i))
      _normal
      return
    fi
    case "$at:${words[i]}" in
)" + step_cases(root) +
         R"(    esac
  done
  case "$at:${words[CURRENT-1]}" in
)" + value_cases(root, zsh_offer) +
         R"(  esac
  case "$at" in
)" + zsh_word_cases(root) +
         R"(  esac
}
if [[ "${funcstack[1]}" == _muster ]]; then
  _muster "$@"
else
  compdef _muster muster
fi
)";
}

namespace {

/// The options of `complete` that offer the words allowed at a place.
std::string fish_offer(Offer kind, const std::vector<std::string>& choices) {
  switch (kind) {
    case Offer::kChoices:
      return " -a " + shell_quoted(base::joined(choices, " "));
    case Offer::kFiles:
      return " -F";
    case Offer::kFolders:
      return " -a '(__fish_complete_directories)'";
    case Offer::kVariables:
      return " -a '(set -nx)'";
    case Offer::kJobs:
    case Offer::kProjects:
    case Offer::kNodes:
    case Offer::kContexts:
    case Offer::kUsers:
    case Offer::kTokens:
      return " -a '(muster " + std::string(names_command(kind)) + " 2>/dev/null)'";
    case Offer::kNothing:
      return "";
  }
  return "";
}

std::string fish_step_cases(const Command& root) {
  std::string text;
  for (const Step& step : steps_in(root)) {
    text += "            case " + shell_quoted(step.at + ":" + step.word) + "\n" +
            "                set at " + shell_quoted(step.to) + "\n";
  }
  return text;
}

std::string complete_lines(const CommandPlace& place) {
  const std::string begin =
      "complete -c muster -n " + shell_quoted("__muster_is \"" + place.at + "\"");
  std::string text;
  for (const Command& child : place.command->commands) {
    text += begin + " -a " + child.name + " -d " + shell_quoted(child.help) + "\n";
  }
  const Positionals& positionals = place.command->positionals;
  if (positionals.offer != Offer::kNothing) {
    text += begin + fish_offer(positionals.offer, positionals.choices) + "\n";
  }
  for (const Flag& flag : place.command->flags) {
    if (flag.hidden) continue;
    text += begin + " -l " + flag.name.substr(2);
    if (!flag.letter.empty()) text += " -s " + flag.letter.substr(1);
    if (!flag.is_switch()) text += " -r" + fish_offer(flag.offer, flag.choices);
    text += " -d " + shell_quoted(flag.help) + "\n";
  }
  return text;
}

}  // namespace

std::string fish_completion(const Command& root) {
  std::string text = R"(# fish completion of muster; to use it: muster completion fish | source
function __muster_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        if test "$word" = --
            echo program
            return
        end
        switch "$at:$word"
)" + fish_step_cases(root) +
                     R"(        end
    end
    echo "$at"
end
function __muster_is
    test (__muster_at) = "$argv[1]"
end
complete -c muster -f
complete -c muster -n '__muster_is program' -F -a '(__fish_complete_command)'
)";
  for (const CommandPlace& place : places_in(root)) text += complete_lines(place);
  return text;
}

}  // namespace muster::cli
