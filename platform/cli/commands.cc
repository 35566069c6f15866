#include "cli/commands.h"

#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/chosen_context.h"
#include "cli/command_tree.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/report.h"
#include "cli/server_start.h"
#include "cli/terminal.h"
#include "cli/yaml_output.h"

namespace muster::cli {

namespace {

std::string version_json(const std::string& version, const Context& context,
                         const Result<api::ServerInfo>& server) {
  nlohmann::ordered_json json{{"version", version}, {"context", context.name}, {"server", nullptr}};
  if (server) {
    json["server"] = {
        {"version", server->version}, {"pid", server->pid}, {"state_folder", server->state_folder}};
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string version_text(const std::string& version, const Context& context,
                         const Result<api::ServerInfo>& server) {
  const std::string text = "muster " + version + "\n";
  if (!context.is_local()) {
    const std::string at = context.server + " (context " + context.name + ")";
    return text +
           (server ? "server " + server->version + " at " + at
                   : "no word from " + at + ": " + server.error().what) +
           "\n";
  }
  if (!server) return text + "no server runs; the next command that needs one starts it\n";
  return text + "server " + server->version + ", process " + std::to_string(server->pid) +
         ", state in " + server->state_folder + "\n";
}

/// What the server says, or why it does not. No server is started for this: a question about
/// versions should change nothing.
Result<api::ServerInfo> ask_for_info(const Context& context) {
  if (context.is_local()) {
    MUSTER_TRY(const Paths paths, paths_here());
    return api::Client(paths.socket).info();
  }
  MUSTER_TRY(const http::TlsEndpoint endpoint, endpoint_of(context));
  return api::Client(endpoint, context.token).info();
}

}  // namespace

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

Result<int> execute(const VersionCommand& command, const Hooks& hooks) {
  MUSTER_TRY(const Context context, chosen_context(hooks.context));
  const Result<api::ServerInfo> server = ask_for_info(context);
  MUSTER_CHECK(show(command.output, version_text(hooks.version, context, server),
                    version_json(hooks.version, context, server)));
  return kExitDone;
}

Result<int> execute(const CompletionCommand& command, const Hooks&) {
  const Command root = command_tree();
  // Written raw: a script must reach the shell byte by byte.
  const std::string script = command.shell == "zsh"    ? zsh_completion(root)
                             : command.shell == "fish" ? fish_completion(root)
                                                       : bash_completion(root);
  MUSTER_CHECK(base::write_all(STDOUT_FILENO, script));
  return kExitDone;
}

Result<int> execute(const HelpCommand& command, const Hooks&) {
  const std::string text = help_text(command_tree(), command.path);
  if (!command.asked) {
    std::cerr << text;
    return kExitUsage;
  }
  MUSTER_CHECK(show(text));
  return kExitDone;
}

}  // namespace muster::cli
