// Projects and clusters: which there are, and which commands go to. A cluster is a context.
#include "api/cluster_wire.h"
#include "cli/accounts/accounts.h"
#include "cli/common/report.h"
#include "cli/connection/caller.h"
#include "cli/connection/commands.h"
#include "cli/connection/contexts.h"
#include "config/paths.h"
#include "dialects/runai/cluster_views.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"

namespace muster::dialects::runai {

namespace {

constexpr const char* kProjectVariable = "MUSTER_PROJECT";

void note_variable(const Asked& asked, const std::string& chosen) {
  const auto found = asked.caller.environment.find(kProjectVariable);
  if (found == asked.caller.environment.end()) return;
  if (found->second.empty() || found->second == chosen) return;
  say("note: " + std::string(kProjectVariable) + "=" + found->second +
      " is set, and goes before the default project");
}

}  // namespace

Result<int> list_projects_command(Asked& asked) {
  const cli::Output output = output_of(asked, {"table", "json", "yaml", "names"});
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const std::vector<job::ProjectStatus> projects,
             connection.call([](api::Client& client) { return client.projects(); }));
  std::string names;
  for (const job::ProjectStatus& status : projects) names += status.project.name + "\n";
  const std::string text =
      output == cli::Output::kNames ? names : project_list(projects, project_of(asked));
  MUSTER_CHECK(cli::show(output, text, api::projects_to_json(projects)));
  return cli::kExitDone;
}

Result<int> use_project_command(Asked& asked) {
  const std::string name = the_name(asked, "project");
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  const auto project = connection.call([&](api::Client& client) { return client.project(name); });
  if (!project) {
    const bool is_missing = project.error().code == base::ErrorCode::kNotFound;
    return is_missing ? no_such_project(name) : project.error();
  }
  MUSTER_CHECK(cli::use_project(name, asked.hooks.context));
  MUSTER_CHECK(cli::show("Project " + name + " has been set as default project\n"));
  note_variable(asked, name);
  return cli::kExitDone;
}

Result<int> list_clusters_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(const cli::Context in_use, cli::chosen_context(asked.hooks.context));
  MUSTER_TRY(const cli::Contexts contexts, cli::read_contexts(config::config_folder_here()));
  std::vector<Cluster> clusters;
  for (const std::string& name : contexts.names()) {
    const cli::Context* const known = contexts.find(name);
    const std::string project = name == in_use.name ? project_of(asked)
                                : known == nullptr  ? ""
                                                    : known->project;
    clusters.push_back({.name = name, .project = project});
  }
  MUSTER_CHECK(cli::show(cluster_list(clusters, in_use.name)));
  return cli::kExitDone;
}

Result<int> use_cluster_command(Asked& asked) {
  const std::string name = the_name(asked, "cluster");
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_CHECK(cli::change_contexts(
      config::config_folder_here(), [&](cli::Contexts& contexts) -> Result<void> {
        MUSTER_TRY(const cli::Context chosen, cli::context_of(contexts, name));
        contexts.in_use = chosen.name;
        return {};
      }));
  MUSTER_CHECK(cli::show("Cluster " + name + " has been set as default cluster\n"));
  cli::accounts::note_what_goes_before();
  return cli::kExitDone;
}

}  // namespace muster::dialects::runai
