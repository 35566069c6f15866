#include "dialects/runai/runai.h"

#include <algorithm>
#include <iostream>

#include "cli/command/arguments.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "dialects/runai/command_tree.h"
#include "dialects/runai/commands.h"
#include "dialects/runai/words.h"

namespace muster::dialects::runai {

namespace {

Result<int> show_help(const cli::Command& root, const cli::Arguments& arguments) {
  MUSTER_CHECK(cli::show(cli::help_text(root, arguments.path)));
  return cli::kExitDone;
}

bool submits(const cli::Arguments& arguments) {
  return !arguments.path.empty() && arguments.path.front().starts_with("submit");
}

/// A '\' followed by a blank at the end of a line, as printed in the document on distributed
/// training, is a word that consists of one blank to a shell, and the command ends there. The
/// missing flags are then not reported as the user's faults. (A flag's value that is a blank is in
/// the same word as its flag.)
bool is_cut_off(const std::vector<std::string>& plain) {
  const auto end = std::find(plain.begin(), plain.end(), "--");
  return std::any_of(plain.begin(), end, [](const std::string& word) {
    return !word.empty() && word.find_first_not_of(' ') == std::string::npos;
  });
}

base::Error cut_off() {
  return {.code = base::ErrorCode::kInvalid,
          .what =
              "the command is incomplete: a blank follows a '\\', so the shell read the next line "
              "as another command",
          .advice = "remove blanks after each '\\' at the end of a line"};
}

Result<int> execute_words(const std::vector<std::string>& words, const cli::Hooks& hooks) {
  const cli::Command root = command_tree();
  const std::vector<std::string> plain = plain_words(words);
  if (is_cut_off(plain)) return cut_off();
  const cli::Arguments arguments = cli::sort_arguments(root, plain);
  if (arguments.has("--help")) return show_help(root, arguments);
  cli::FlagReader reader(arguments);
  if (arguments.path.empty() && reader.ok()) {
    std::cerr << cli::help_text(root, {}) << std::flush;
    return cli::kExitUsage;
  }
  if (arguments.path.empty()) return cli::usage_error({}, reader.faults(), "runai");
  MUSTER_TRY(const cli::Caller caller, cli::this_caller(hooks.context));
  Invocation invocation{words, arguments, reader, caller, hooks};
  return submits(arguments) ? submit(invocation) : run_command(invocation);
}

}  // namespace

int run(const std::vector<std::string>& words, const cli::Hooks& hooks) {
  return cli::run_and_report("runai", [&]() -> Result<int> {
    auto code = execute_words(words, hooks);
    if (code) return code;
    return for_runai(std::move(code).error());
  });
}

}  // namespace muster::dialects::runai
