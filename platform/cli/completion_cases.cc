#include "cli/completion_cases.h"

#include "base/text.h"
#include "cli/completion.h"

namespace muster::cli {

using base::shell_quoted;

namespace {

std::string pattern(const std::string& at, const std::string& word) {
  return shell_quoted(at + ":" + word);
}

}  // namespace

std::string step_cases(const Command& root) {
  std::string text;
  for (const Step& step : steps_in(root)) {
    text += "      " + pattern(step.at, step.word) + ") at=" + shell_quoted(step.to) + " ;;\n";
  }
  return text;
}

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

}  // namespace muster::cli
