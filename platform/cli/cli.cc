#include "cli/cli.h"

#include <optional>

#include "cli/commands.h"
#include "cli/gradient/gradient.h"
#include "cli/runai/runai.h"
#include "cli/tell.h"

namespace muster::cli {

namespace {

template <class... Commands>
Result<int> execute_any(const Invocation& invocation, const Hooks& hooks,
                        CommandTypes<Commands...>) {
  std::optional<Result<int>> result;
  const auto execute_if = [&]<class Command>(const Command* command) {
    if (command) result = execute(*command, hooks);
    return command != nullptr;
  };
  (execute_if(invocation.get_if<Commands>()) || ...);
  return *result;
}

Result<int> run_own(const std::vector<std::string>& args, const Hooks& hooks) {
  base::SystemRandom random;
  Hooks chosen = hooks;
  chosen.context = context_flag(args);
  MUSTER_TRY(const Caller caller, this_caller(chosen.context));
  MUSTER_TRY(const Invocation invocation, parse_invocation(args, caller, random));
  return execute_any(invocation, chosen, AllCommands{});
}

}  // namespace

/// A dialect has commands of its own behind its name.
int run(const std::vector<std::string>& args, const Hooks& hooks) {
  const std::string first = args.empty() ? "" : args.front();
  if (first != "gradient" && first != "runai") {
    return run_and_tell("muster", [&] { return run_own(args, hooks); });
  }
  const std::vector<std::string> words(args.begin() + 1, args.end());
  return first == "gradient" ? gradient::run(words, hooks) : runai::run(words, hooks);
}

}  // namespace muster::cli
