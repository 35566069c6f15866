// The root command, and the commands about muster itself: version, completion, help.
#include "cli/cli.h"

#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/json_text.h"
#include "cli/accounts/accounts.h"
#include "cli/cluster/cluster.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/connection/contexts.h"
#include "cli/connection/server_start.h"
#include "cli/files/files.h"
#include "cli/jobs/jobs.h"
#include "cli/logs/logs.h"
#include "cli/metrics/metrics.h"
#include "cli/projects/projects.h"
#include "cli/server/server.h"
#include "cli/sessions/sessions.h"
#include "cli/simulation/simulate.h"
#include "cli/sweeps/sweeps.h"
#include "config/paths.h"
#include "record/input.h"

namespace muster::cli {

namespace {

std::string version_json(const std::string& version, const Context& context,
                         const Result<api::ServerInfo>& server) {
  nlohmann::ordered_json json{{"version", version}, {"context", context.name}, {"server", nullptr}};
  if (server) {
    json["server"] = {
        {"version", server->version}, {"pid", server->pid}, {"state_folder", server->state_folder}};
  }
  return base::json_text(json);
}

/// Whether the next command that needs a server may start one here.
Result<void> may_start_server(const config::ServerSource& source) {
  MUSTER_TRY(const config::Paths paths, config::paths_here());
  MUSTER_TRY(const config::ServeOptions options,
             config::read_server_options(config::with_usual_file(source)));
  const config::ServerOrigin recorded = config::recorded_origin(paths.server_origin());
  return config::check_origin(paths.state_folder, recorded,
                              config::origin_there(options, false, recorded));
}

std::string no_server_text(const config::ServerSource& source) {
  const auto may_start = may_start_server(source);
  if (may_start) return "no server is running; the next command that needs a server starts one";
  const base::Error& why = may_start.error();
  return "no server is running: " + why.what + (why.advice.empty() ? "" : "; " + why.advice);
}

std::string version_text(const VersionCommand& command, const std::string& version,
                         const Context& context, const Result<api::ServerInfo>& server) {
  const std::string text = "muster " + version + "\n";
  if (!context.is_local()) {
    const std::string at = context.server + " (context " + context.name + ")";
    return text +
           (server ? "server " + server->version + " at " + at
                   : "no answer from " + at + ": " + server.error().what) +
           "\n";
  }
  if (!server) return text + no_server_text(command.source) + "\n";
  return text + "server " + server->version + ", process " + std::to_string(server->pid) +
         ", state in " + server->state_folder + "\n";
}

/// The server's version and engine, or why it is unreachable. Starts no server: a question about
/// versions must change nothing.
Result<api::ServerInfo> ask_for_info(const Context& context) {
  if (context.is_local()) {
    MUSTER_TRY(const config::Paths paths, config::paths_here());
    return api::Client(paths.socket).info();
  }
  MUSTER_TRY(const http::TlsEndpoint endpoint, endpoint_of(context));
  return api::Client(endpoint, context.token).info();
}

Call read_version(Reading& in) {
  return VersionCommand{.output = in.output(), .source = server::read_server_variables(in.caller)};
}

Call read_completion(Reading& in) {
  const std::string shell = in.arguments.names.empty() ? "" : in.arguments.names.front();
  if (shell != "bash" && shell != "zsh" && shell != "fish") {
    in.reader.fault("SHELL", record::not_a_choice(shell, {"bash", "zsh", "fish"}));
  }
  return CompletionCommand{shell};
}

Call read_help(Reading& in) {
  const Command* command = &in.root;
  for (const std::string& word : in.arguments.names) {
    const Command* child = command->find_command(word);
    if (child == nullptr) {
      in.reader.fault("", unknown_command(word, *command));
      break;
    }
    command = child;
  }
  return HelpCommand{.path = in.arguments.names};
}

Call read_root(Reading& in) {
  const bool asked = in.arguments.has("--help");
  if (in.arguments.path.empty() && !asked && in.reader.has("--version")) {
    return VersionCommand{.source = server::read_server_variables(in.caller)};
  }
  return HelpCommand{.path = in.arguments.path, .asked = asked};
}

Command version_command() {
  return {.name = "version",
          .help = "show the versions of muster and of its server",
          .read = read_version,
          .flags = output_flag(),
          .example = "muster version"};
}

Command completion_command() {
  return {.name = "completion",
          .help = "print a completion script for bash, zsh or fish",
          .read = read_completion,
          .positionals = {.name = "SHELL",
                          .least = 1,
                          .most = 1,
                          .choices = {"bash", "zsh", "fish"},
                          .offer = Offer::kChoices},
          .example = "source <(muster completion bash)"};
}

Command help_command() {
  return {.name = "help",
          .help = "show the help of muster or of a command",
          .read = read_help,
          .positionals = {.name = "COMMAND", .most = 2},
          .example = "muster help submit mpi"};
}

/// project, with the commands on its members.
Command whole_project_command() {
  Command project = projects::project_command();
  for (Command& command : accounts::member_commands())
    project.commands.push_back(std::move(command));
  return project;
}

/// --context, of `command` and all below it that talk to a server.
void add_context_flag(Command& command) {
  // These commands need no server, or have an argument that chooses it.
  for (const std::string_view name :
       {"server", "store", "simulate", "completion", "help", "login", "logout", "context"}) {
    if (command.name == name) return;
  }
  command.flags.push_back({.name = "--context",
                           .value = "CONTEXT",
                           .help = "server to use, by its context (see: muster context list)",
                           .offer = Offer::kContexts});
  for (Command& child : command.commands) add_context_flag(child);
}

/// Every command accepts --help.
void add_help_flag(Command& command) {
  command.flags.push_back({.name = "--help", .letter = "-h", .help = "show this help"});
  for (Command& child : command.commands) add_help_flag(child);
}

}  // namespace

Command command_tree() {
  Command root{.name = "muster",
               .help = "Muster runs distributed training jobs.",
               .read = read_root,
               .flags = {{.name = "--version", .help = "show the version"}},
               .commands = {jobs::run_command(),
                            jobs::submit_command(),
                            jobs::list_command(),
                            jobs::get_command(),
                            logs::logs_command(),
                            sessions::exec_command(),
                            jobs::stop_command(),
                            jobs::wait_command(),
                            jobs::suspend_command(),
                            jobs::resume_command(),
                            jobs::rerun_command(),
                            jobs::diff_command(),
                            jobs::schedule_command(),
                            jobs::explain_command(),
                            jobs::events_command(),
                            jobs::delete_command(),
                            sweeps::sweep_command(),
                            sessions::bash_command(),
                            sessions::attach_command(),
                            sessions::convert_command(),
                            files::copy_command(),
                            sessions::port_forward_command(),
                            files::artifacts_command(),
                            metrics::metrics_command(),
                            whole_project_command(),
                            cluster::node_command(),
                            jobs::queue_command(),
                            cluster::top_command(),
                            projects::notify_command(),
                            accounts::ui_command(),
                            accounts::login_command(),
                            accounts::logout_command(),
                            accounts::whoami_command(),
                            accounts::context_command(),
                            accounts::user_command(),
                            accounts::token_command(),
                            accounts::secret_command(),
                            accounts::audit_command(),
                            server::server_command(),
                            server::store_command(),
                            server::doctor_command(),
                            simulation::simulate_command(),
                            version_command(),
                            completion_command(),
                            help_command()},
               .example = "muster run -n 4 -- ./train"};
  add_context_flag(root);
  add_help_flag(root);
  return root;
}

Result<int> execute(const VersionCommand& command, const Hooks& hooks) {
  MUSTER_TRY(const Context context, chosen_context(hooks.context));
  const Result<api::ServerInfo> server = ask_for_info(context);
  MUSTER_CHECK(show(command.output, version_text(command, hooks.version, context, server),
                    version_json(hooks.version, context, server)));
  return kExitDone;
}

Result<int> execute(const CompletionCommand& command, const Hooks&) {
  const Command root = command_tree();
  // Bypasses the terminal filter: the shell needs the script unchanged.
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

int run(const std::vector<std::string>& args, const Hooks& hooks) {
  return run_and_report("muster", [&] { return run_own(args, hooks); });
}

}  // namespace muster::cli
