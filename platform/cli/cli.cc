#include "cli/cli.h"

#include "cli/call.h"
#include "cli/caller.h"
#include "cli/gradient/gradient.h"
#include "cli/root.h"
#include "cli/runai/runai.h"
#include "cli/tell.h"

namespace muster::cli {

namespace {

Result<int> run_own(const std::vector<std::string>& args, const Hooks& hooks) {
  const Command root = command_tree();
  base::SystemRandom random;
  Hooks chosen = hooks;
  chosen.context = context_flag(root, args);
  MUSTER_TRY(const Caller caller, this_caller(chosen.context));
  MUSTER_TRY(const Call call, read_call(root, args, caller, random));
  return call(chosen);
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
