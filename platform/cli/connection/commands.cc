#include "cli/connection/commands.h"

#include <unistd.h>

#include <iostream>

#include "base/files.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/connection/contexts.h"

namespace muster::cli {

Result<Connection> connect(const Hooks& hooks, const std::string& project) {
  MUSTER_TRY(const Context context, chosen_context(hooks.context));
  return Connection::open(context, hooks.version, project, hooks.engine);
}

int for_each_name(const std::vector<std::string>& names,
                  const std::function<Result<void>(const std::string&)>& act) {
  int code = kExitDone;
  for (const std::string& name : names) {
    const auto done = act(name);
    if (done) continue;
    std::cerr << error_text(done.error()) << std::flush;
    if (code == kExitDone) code = exit_code_of(done.error());
  }
  return code;
}

int delete_each(const std::vector<std::string>& names, bool ignore_missing,
                const std::function<Result<void>(const std::string&)>& remove) {
  return for_each_name(names, [&](const std::string& name) -> Result<void> {
    auto removed = remove(name);
    const bool missing = !removed && removed.error().code == base::ErrorCode::kNotFound;
    if (missing && ignore_missing) return {};
    MUSTER_CHECK(std::move(removed));
    return show("deleted " + name + "\n");
  });
}

std::string names_of(const std::vector<job::Job>& jobs) {
  std::string text;
  for (const job::Job& job : jobs) text += job.spec.name + "\n";
  return text;
}

Result<void> show(std::string_view text) {
  const bool is_terminal = terminal_of(STDOUT_FILENO).is_terminal;
  auto written = is_terminal ? base::write_all(STDOUT_FILENO, safe_lines(text))
                             : base::write_all(STDOUT_FILENO, text);
  if (written) return {};
  base::Error error = std::move(written).error();
  // Not kUnavailable, which here would stand for the server.
  error.code = base::ErrorCode::kInternal;
  return error;
}

Result<void> show(Output output, std::string_view text, std::string_view json) {
  if (output == Output::kYaml) return show(json_to_yaml(json));
  if (output == Output::kJson) return show(std::string(json) + "\n");
  return show(text);
}

}  // namespace muster::cli
