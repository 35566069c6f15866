// Projects and clusters: lists them, and chooses the ones in use. A cluster is a context.

#include <unistd.h>

#include <algorithm>

#include "api/cluster_wire.h"
#include "base/files.h"
#include "cli/accounts/accounts.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/connection/contexts.h"
#include "config/paths.h"
#include "dialects/runai/cluster_views.h"
#include "dialects/runai/command_tree.h"
#include "dialects/runai/commands.h"

namespace muster::dialects::runai {

namespace {

constexpr const char* kProjectVariable = "MUSTER_PROJECT";

void note_variable(const Invocation& invocation, const std::string& chosen) {
  const auto found = invocation.caller.environment.find(kProjectVariable);
  if (found == invocation.caller.environment.end()) return;
  if (found->second.empty() || found->second == chosen) return;
  note("note: " + std::string(kProjectVariable) + "=" + found->second +
       " is set and overrides the default project");
}

}  // namespace

Result<int> list_projects_command(Invocation& invocation) {
  const cli::Output output = output_of(invocation, {"table", "json", "yaml", "names"});
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const std::vector<job::ProjectStatus> projects,
             connection.call([](api::Client& client) { return client.projects(); }));
  std::string names;
  for (const job::ProjectStatus& status : projects) names += status.project.name + "\n";
  const std::string text =
      output == cli::Output::kNames ? names : project_list(projects, project_of(invocation));
  MUSTER_CHECK(cli::show(output, text, api::projects_to_json(projects)));
  return cli::kExitDone;
}

Result<int> use_project_command(Invocation& invocation) {
  const std::string name = the_name(invocation, "project");
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  const auto project = connection.call([&](api::Client& client) { return client.project(name); });
  if (!project) {
    const bool is_missing = project.error().code == base::ErrorCode::kNotFound;
    return is_missing ? no_such_project(name) : project.error();
  }
  MUSTER_CHECK(cli::use_project(name, invocation.hooks.context));
  MUSTER_CHECK(cli::show("Project " + name + " has been set as default project\n"));
  note_variable(invocation, name);
  return cli::kExitDone;
}

Result<int> list_clusters_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(const cli::Context in_use, cli::chosen_context(invocation.hooks.context));
  MUSTER_TRY(const cli::Contexts contexts, cli::read_contexts(config::config_folder_here()));
  std::vector<Cluster> clusters;
  for (const std::string& name : contexts.names()) {
    const cli::Context* const known = contexts.find(name);
    const std::string project = name == in_use.name ? project_of(invocation)
                                : known == nullptr  ? ""
                                                    : known->project;
    clusters.push_back({.name = name, .project = project});
  }
  MUSTER_CHECK(cli::show(cluster_list(clusters, in_use.name)));
  return cli::kExitDone;
}

Result<int> use_cluster_command(Invocation& invocation) {
  const std::string name = the_name(invocation, "cluster");
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_CHECK(cli::change_contexts(
      config::config_folder_here(), [&](cli::Contexts& contexts) -> Result<void> {
        MUSTER_TRY(const cli::Context chosen, cli::context_of(contexts, name));
        contexts.in_use = chosen.name;
        return {};
      }));
  MUSTER_CHECK(cli::show("Cluster " + name + " has been set as default cluster\n"));
  cli::accounts::note_context_override();
  return cli::kExitDone;
}

// Login, version, completion; and features of Run:AI that Muster lacks.

namespace {

/// The scripts contain the program's name and derive the names of their functions from it.
std::string with_name(std::string script, const std::string& name) {
  constexpr std::string_view kOwnName = "muster";
  for (size_t at = script.find(kOwnName); at != std::string::npos; at = script.find(kOwnName, at)) {
    script.replace(at, kOwnName.size(), name);
    at += name.size();
  }
  return script;
}

}  // namespace

Result<int> login_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  return not_here("runai login has no server address",
                  "muster login https://HOST:PORT opens a session for runai, too; your own server "
                  "on this machine needs no session");
}

Result<int> logout_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  return execute(cli::accounts::LogoutCommand{}, invocation.hooks);
}

Result<int> whoami_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const api::WhoAmI who,
             connection.call([](api::Client& client) { return client.who_am_i(); }));
  const std::string user = who.user.empty() ? "-" : who.user;
  // On the socket of the user's own server there is no token, so only the user is printed.
  MUSTER_CHECK(cli::show("User: " + user +
                         "\nLogged in Id: " + (who.token.empty() ? user : who.token) + "\n"));
  return cli::kExitDone;
}

Result<int> version_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  const std::string head = invocation.reader.has("--short") ? "" : "Version: ";
  MUSTER_CHECK(cli::show(head + invocation.hooks.version + "\n"));
  return cli::kExitDone;
}

Result<int> completion_command(Invocation& invocation) {
  const cli::Command root = command_tree();
  const std::vector<std::string> shells = root.find_command("completion")->positionals.choices;
  const std::string shell =
      invocation.arguments.names.empty() ? "" : invocation.arguments.names.front();
  if (invocation.reader.ok() && std::find(shells.begin(), shells.end(), shell) == shells.end()) {
    invocation.reader.fault("", "name a shell: bash, zsh or fish");
  }
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  const std::string script = shell == "zsh"    ? cli::zsh_completion(root)
                             : shell == "fish" ? cli::fish_completion(root)
                                               : cli::bash_completion(root);
  // Bypasses the terminal filter: the shell needs the script unchanged.
  MUSTER_CHECK(base::write_all(STDOUT_FILENO, with_name(script, root.name)));
  return cli::kExitDone;
}

Result<int> templates_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  return not_here("templates are not supported",
                  "store the flags in a script, or the job in a job file: muster submit -f FILE");
}

Result<int> update_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  return not_here("runai cannot update itself",
                  "it is the program muster under another name, and is updated with it");
}

}  // namespace muster::dialects::runai
