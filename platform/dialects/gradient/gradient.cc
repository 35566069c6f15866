#include "dialects/gradient/gradient.h"

#include <algorithm>

#include "base/files.h"
#include "cli/command/help.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "config/yaml.h"
#include "dialects/gradient/command_tree.h"
#include "dialects/gradient/commands.h"
#include "dialects/gradient/options_file.h"

namespace muster::dialects::gradient {

namespace {

const cli::Command& command_at(const cli::Command& root, const std::vector<std::string>& path) {
  const cli::Command* command = &root;
  for (const std::string& word : path) command = command->find_command(word);
  return *command;
}

/// A flag whose value was forgotten takes the next flag for it.
void report_swallowed_flags(const cli::Command& command, cli::Arguments& arguments) {
  for (const auto& [flag, values] : arguments.flags) {
    for (const std::string& value : values) {
      if (!value.starts_with("--") || command.find_flag(value) == nullptr) continue;
      arguments.faults.push_back(
          {.field = flag, .what = "needs a value; what follows it is the flag '" + value + "'"});
    }
  }
}

Result<void> read_options(const cli::Command& command, cli::Arguments& arguments) {
  const auto found = arguments.flags.find("--optionsFile");
  if (found == arguments.flags.end()) return {};
  const std::string& file = found->second.back();
  auto text = base::read_file(file, config::kMaxYamlBytes);
  if (!text) {
    base::Error error = std::move(text).error();
    error.code = base::ErrorCode::kInvalid;  // kNotFound would say that an experiment is missing
    return error;
  }
  return add_options(*text, file, command, arguments);
}

Result<int> write_options(const cli::Command& command, const cli::Arguments& arguments) {
  if (!arguments.faults.empty()) {
    return cli::usage_error(arguments.path, arguments.faults, "gradient");
  }
  // 0600: there may be a password among them.
  MUSTER_CHECK(base::write_file(arguments.flags.at("--createOptionsFile").back(),
                                options_text(command, arguments)));
  return cli::kExitDone;
}

bool creates(const std::vector<std::string>& path) {
  constexpr size_t kDepth = 3;
  return path.size() == kDepth && path[0] == "experiments" &&
         (path[1] == "create" || path[1] == "run");
}

Result<int> run_command_line(const std::vector<std::string>& words, const cli::Hooks& hooks) {
  const cli::Command root = command_tree();
  cli::Arguments arguments = cli::sort_arguments(root, words);
  if (arguments.has("--help")) {
    MUSTER_CHECK(cli::show(cli::help_text(root, arguments.path)));
    return cli::kExitDone;
  }
  if (arguments.path.empty() && arguments.has("--version")) arguments.path = {"version"};
  const cli::Command& command = command_at(root, arguments.path);
  report_swallowed_flags(command, arguments);
  MUSTER_CHECK(read_options(command, arguments));
  if (arguments.has("--createOptionsFile")) return write_options(command, arguments);
  MUSTER_TRY(const cli::Caller caller, cli::this_caller(hooks.context));
  cli::FlagReader reader(arguments);
  Asked asked{.path = arguments.path,
              .arguments = arguments,
              .reader = reader,
              .caller = caller,
              .hooks = hooks,
              .words = words};
  return creates(arguments.path) ? create_or_run(asked) : run_other(asked);
}

}  // namespace

int run(const std::vector<std::string>& words, const cli::Hooks& hooks) {
  return cli::run_and_tell("gradient", [&] { return run_command_line(words, hooks); });
}

}  // namespace muster::dialects::gradient
