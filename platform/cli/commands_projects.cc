// project: who may use how much, and which of them a user submits to.
#include "api/project_wire.h"
#include "cli/commands.h"
#include "cli/project_choice.h"
#include "cli/project_view.h"
#include "cli/report.h"
#include "job/project.h"

namespace muster::cli {

namespace {

std::string in_use_or_default(const std::string& in_use) {
  return in_use.empty() ? std::string(job::kDefaultProject) : in_use;
}

}  // namespace

Result<int> execute(const ProjectChangeCommand& command, const Hooks& hooks) {
  const bool creates = command.what == ProjectChangeCommand::What::kCreate;
  MUSTER_TRY(Connection connection, connect(hooks));
  // Creating is not sent twice: where the answer was lost, the second would be told of a conflict.
  const auto changed = creates ? connection.client().create_project(command.name, command.change)
                               : connection.call([&](api::Client& client) {
                                   return client.patch_project(command.name, command.change);
                                 });
  if (!changed) return changed.error();
  MUSTER_CHECK(show(command.output,
                    (creates ? "created " : "changed ") + changed->project.name + "\n",
                    api::project_to_json(*changed)));
  return kExitDone;
}

Result<int> execute(const ProjectListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<job::ProjectStatus> projects,
             connection.call([](api::Client& client) { return client.projects(); }));
  std::string names;
  for (const job::ProjectStatus& status : projects) names += status.project.name + "\n";
  MUSTER_CHECK(
      show(command.output,
           command.output == Output::kNames ? names : project_table(projects, command.in_use),
           api::projects_to_json(projects)));
  return kExitDone;
}

Result<int> execute(const ProjectGetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const job::ProjectStatus project,
             connection.call([&](api::Client& client) { return client.project(command.name); }));
  MUSTER_CHECK(show(command.output, project_page(project), api::project_to_json(project)));
  return kExitDone;
}

Result<int> execute(const ProjectDeleteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  return delete_each(command.names, command.ignore_missing, [&](const std::string& name) {
    return connection.client().remove_project(name);
  });
}

Result<int> execute(const ProjectUseCommand& command, const Hooks& hooks) {
  if (!command.name) {
    MUSTER_CHECK(show(in_use_or_default(command.in_use) + "\n"));
    return kExitDone;
  }
  MUSTER_TRY(Connection connection, connect(hooks));
  // A name that is not there is better told now than at the next submit.
  MUSTER_CHECK(connection.call([&](api::Client& client) { return client.project(*command.name); }));
  MUSTER_CHECK(use_project(*command.name, hooks.context));
  MUSTER_CHECK(show("jobs go to " + *command.name + " from now on\n"));
  return kExitDone;
}

}  // namespace muster::cli
