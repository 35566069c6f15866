#include "base/text.h"
#include "cli/completion.h"
#include "cli/completion_cases.h"

namespace muster::cli {

namespace {

using base::shell_quoted;

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

/// An entry of _describe: the word, a colon, what it is for.
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

// "path" and "words" are zsh's own variables: the first is tied to PATH, the second is the line.
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

}  // namespace muster::cli
