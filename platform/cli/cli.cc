#include "cli/cli.h"

#include <unistd.h>

#include <exception>
#include <iostream>

#include "cli/commands.h"
#include "cli/gradient/gradient.h"
#include "cli/report.h"
#include "cli/runai/runai.h"
#include "cli/terminal.h"

namespace muster::cli {

namespace {

int tell(const base::Error& error) {
  const std::string text = error_text(error);
  std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(text) : text) << std::flush;
  return exit_code_of(error);
}

int run_or_throw(const std::vector<std::string>& args, const Hooks& hooks) {
  base::SystemRandom random;
  Hooks chosen = hooks;
  chosen.context = context_flag(args);
  const auto caller = this_caller(chosen.context);
  if (!caller) return tell(caller.error());
  const auto invocation = parse_invocation(args, *caller, random);
  if (!invocation) return tell(invocation.error());
  const Result<int> code =
      std::visit([&](const auto& command) { return execute(command, chosen); }, *invocation);
  return code ? *code : tell(code.error());
}

/// A dialect has commands of its own behind its name.
int run_dialect_or_own(const std::vector<std::string>& args, const Hooks& hooks) {
  const std::string first = args.empty() ? "" : args.front();
  if (first != "gradient" && first != "runai") return run_or_throw(args, hooks);
  const std::vector<std::string> words(args.begin() + 1, args.end());
  return first == "gradient" ? gradient::run(words, hooks) : runai::run(words, hooks);
}

}  // namespace

int run(const std::vector<std::string>& args, const Hooks& hooks) {
  try {
    return run_dialect_or_own(args, hooks);
  } catch (const std::exception& error) {
    // Out of memory, or a defect: nothing above may throw by contract.
    return tell({.what = error.what(), .advice = "this is a defect in muster; please report it"});
  }
}

}  // namespace muster::cli
