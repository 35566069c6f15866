// projects: create, list, details, delete.
#include "api/cluster_wire.h"
#include "cli/common/report.h"
#include "dialects/gradient/command_parts.h"
#include "dialects/gradient/experiment.h"
#include "dialects/gradient/pager.h"
#include "dialects/gradient/views.h"

namespace muster::dialects::gradient {

namespace {

constexpr const char* kWhichProject = "say which project";

void note_what_is_not_kept(const Asked& asked) {
  for (const char* flag : {"--repositoryName", "--repositoryUrl", "--tag", "--tags"}) {
    if (asked.reader.has(flag)) note(std::string(flag) + " is not kept");
  }
}

}  // namespace

Result<int> create_project(Asked& asked) {
  const std::string said = required(asked, "--name", "say what it is to be called");
  // Gradient takes any text; a project's name is its ID here, and part of paths.
  const std::string name = job_name_of(said);
  return with_server(asked, "Failed to create resource: ", "Project",
                     [&](cli::Connection& connection) -> Result<int> {
                       note_what_is_not_kept(asked);
                       // Not sent twice: where the answer was lost, the second would be told of a
                       // conflict.
                       MUSTER_TRY(const job::ProjectStatus made,
                                  connection.client().create_project(name, {}));
                       MUSTER_CHECK(say("Project created with ID: " + made.project.name));
                       return cli::kExitDone;
                     });
}

Result<int> list_projects(Asked& asked) {
  return with_server(asked, kFetch, "Project", [](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const std::vector<job::ProjectStatus> projects,
               connection.call([](api::Client& client) { return client.projects(); }));
    MUSTER_CHECK(projects.empty() ? say("No data found") : show_table(project_table(projects)));
    return cli::kExitDone;
  });
}

Result<int> show_project(Asked& asked) {
  const std::string id = required(asked, "--id", kWhichProject);
  return with_server(asked, kFetch, "Project", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const job::ProjectStatus status,
               connection.call([&](api::Client& client) { return client.project(id); }));
    MUSTER_CHECK(show_table(project_details(status.project)));
    return cli::kExitDone;
  });
}

Result<int> delete_project(Asked& asked) {
  const std::string id = required(asked, "--id", kWhichProject);
  return with_server(asked, kDelete, "Project", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_CHECK(connection.client().remove_project(id));
    MUSTER_CHECK(say("Project deleted"));
    return cli::kExitDone;
  });
}

}  // namespace muster::dialects::gradient
