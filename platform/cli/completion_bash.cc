#include "base/text.h"
#include "cli/completion.h"
#include "cli/completion_cases.h"

namespace muster::cli {

namespace {

using base::shell_quoted;

/// The statement that fills COMPREPLY with what may stand in a place.
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

}  // namespace muster::cli
