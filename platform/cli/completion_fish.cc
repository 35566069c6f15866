#include "base/text.h"
#include "cli/completion.h"

namespace muster::cli {

namespace {

using base::shell_quoted;

/// The options of `complete` that say what may stand in a place.
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

std::string complete_lines(const Place& place) {
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
  for (const Place& place : places_in(root)) text += complete_lines(place);
  return text;
}

}  // namespace muster::cli
