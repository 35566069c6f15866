// Projects and clusters: which there are, and which commands go to. A cluster is a context.
#include "api/project_wire.h"
#include "cli/accounts.h"
#include "cli/chosen_context.h"
#include "cli/commands.h"
#include "cli/contexts_file.h"
#include "cli/paths.h"
#include "cli/project_choice.h"
#include "cli/report.h"
#include "cli/runai/cluster_views.h"
#include "cli/runai/others.h"
#include "cli/runai/parts.h"
#include "cli/runai/sentences.h"

namespace muster::cli::runai {

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
  const Output output = output_of(asked, {"table", "json", "yaml", "names"});
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(Connection connection, connect(asked));
  MUSTER_TRY(const std::vector<job::ProjectStatus> projects,
             connection.call([](api::Client& client) { return client.projects(); }));
  std::string names;
  for (const job::ProjectStatus& status : projects) names += status.project.name + "\n";
  const std::string text =
      output == Output::kNames ? names : project_list(projects, project_of(asked));
  MUSTER_CHECK(show(output, text, api::projects_to_json(projects)));
  return kExitDone;
}

Result<int> use_project_command(Asked& asked) {
  const std::string name = the_name(asked, "project");
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(Connection connection, connect(asked));
  const auto project = connection.call([&](api::Client& client) { return client.project(name); });
  if (!project) {
    const bool is_missing = project.error().code == base::ErrorCode::kNotFound;
    return is_missing ? no_such_project(name) : project.error();
  }
  MUSTER_CHECK(use_project(name, asked.hooks.context));
  MUSTER_CHECK(show("Project " + name + " has been set as default project\n"));
  note_variable(asked, name);
  return kExitDone;
}

Result<int> list_clusters_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(const Context in_use, chosen_context(asked.hooks.context));
  MUSTER_TRY(const Contexts contexts, read_contexts(config_folder_here()));
  std::vector<Cluster> clusters;
  for (const std::string& name : contexts.names()) {
    const Context* const known = contexts.find(name);
    const std::string project = name == in_use.name ? project_of(asked)
                                : known == nullptr  ? ""
                                                    : known->project;
    clusters.push_back({.name = name, .project = project});
  }
  MUSTER_CHECK(show(cluster_list(clusters, in_use.name)));
  return kExitDone;
}

Result<int> use_cluster_command(Asked& asked) {
  const std::string name = the_name(asked, "cluster");
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_CHECK(change_contexts(config_folder_here(), [&](Contexts& contexts) -> Result<void> {
    MUSTER_TRY(const Context chosen, context_of(contexts, name));
    contexts.in_use = chosen.name;
    return {};
  }));
  MUSTER_CHECK(show("Cluster " + name + " has been set as default cluster\n"));
  note_what_goes_before();
  return kExitDone;
}

}  // namespace muster::cli::runai
