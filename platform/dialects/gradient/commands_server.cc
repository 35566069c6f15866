// projects: create, list, details, delete.

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "api/cluster_wire.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_input.h"
#include "cli/connection/connection.h"
#include "cli/files/files.h"
#include "dialects/gradient/ascii_table.h"
#include "dialects/gradient/commands.h"
#include "dialects/gradient/experiment.h"
#include "dialects/gradient/views.h"
#include "job/project.h"
#include "workspace/path_text.h"

namespace muster::dialects::gradient {

namespace {

constexpr const char* kWhichProject = "name the project";

void note_what_is_not_kept(const Invocation& invocation) {
  for (const char* flag : {"--repositoryName", "--repositoryUrl", "--tag", "--tags"}) {
    if (invocation.reader.has(flag)) note(std::string(flag) + " has no effect");
  }
}

}  // namespace

Result<int> create_project(Invocation& invocation) {
  const std::string given = required(invocation, "--name", "give a name");
  // Gradient accepts any text; here, a project's name is its ID and part of paths.
  const std::string name = job_name_of(given);
  const bool has_letter = std::any_of(given.begin(), given.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte < 0x80 && std::isalnum(byte) != 0;
  });
  if (!given.empty() && !has_letter) {
    invocation.reader.fault("--name",
                            "must contain a letter a-z or a digit, because a project's ID has only "
                            "lower-case letters, digits and hyphens");
  }
  return with_server(
      invocation, "Failed to create resource: ", "Project",
      [&](cli::Connection& connection) -> Result<int> {
        note_what_is_not_kept(invocation);
        // Not repeated after a lost reply: the second request would be answered with
        // a conflict.
        MUSTER_TRY(const job::ProjectStatus made, connection.client().create_project(name, {}));
        MUSTER_CHECK(print_line("Project created with ID: " + made.project.name));
        if (name != given) {
          note("in other commands, name the project '" + name + "', not '" + given + "'");
        }
        return cli::kExitDone;
      });
}

Result<int> list_projects(Invocation& invocation) {
  return with_server(invocation, kFetch, "Project", [](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const std::vector<job::ProjectStatus> projects,
               connection.call([](api::Client& client) { return client.projects(); }));
    MUSTER_CHECK(projects.empty() ? print_line("No data found")
                                  : show_table(project_table(projects)));
    return cli::kExitDone;
  });
}

Result<int> show_project(Invocation& invocation) {
  const std::string id = required(invocation, "--id", kWhichProject);
  return with_server(
      invocation, kFetch, "Project", [&](cli::Connection& connection) -> Result<int> {
        MUSTER_TRY(const job::ProjectStatus status,
                   connection.call([&](api::Client& client) { return client.project(id); }));
        MUSTER_CHECK(show_table(project_details(status.project)));
        return cli::kExitDone;
      });
}

Result<int> delete_project(Invocation& invocation) {
  const std::string id = required(invocation, "--id", kWhichProject);
  return with_server(invocation, kDelete, "Project",
                     [&](cli::Connection& connection) -> Result<int> {
                       MUSTER_CHECK(connection.client().remove_project(id));
                       MUSTER_CHECK(print_line("Project deleted"));
                       return cli::kExitDone;
                     });
}

// clusters list, clusters machineTypes list.

namespace {

Result<std::vector<std::string>> read_pools(cli::Connection& connection) {
  MUSTER_TRY(const std::vector<job::Node> nodes,
             connection.call([](api::Client& client) { return client.nodes(); }));
  return pools_of(nodes);
}

}  // namespace

Result<int> list_clusters(Invocation& invocation) {
  constexpr int kPage = 20;
  const auto limit = static_cast<size_t>(invocation.reader.number_between("--limit", kPage, 1));
  const auto offset = static_cast<size_t>(invocation.reader.number_between("--offset", 0, 0));
  return with_server(
      invocation, kFetch, "Cluster", [&](cli::Connection& connection) -> Result<int> {
        MUSTER_TRY(const std::vector<std::string> all, read_pools(connection));
        const size_t begin = std::min(offset, all.size());
        const size_t end = begin + std::min(limit, all.size() - begin);
        const std::vector<std::string> pools(all.begin() + static_cast<ptrdiff_t>(begin),
                                             all.begin() + static_cast<ptrdiff_t>(end));
        MUSTER_CHECK(pools.empty() ? print_line("No data found")
                                   : show_table(cluster_table(pools)));
        if (end < all.size())
          note("there are more; list them with: --offset " + std::to_string(end));
        return cli::kExitDone;
      });
}

Result<int> list_machine_types(Invocation& invocation) {
  return with_server(
      invocation, kFetch, "Machine type", [](cli::Connection& connection) -> Result<int> {
        MUSTER_TRY(const job::MachineTypes types,
                   connection.call([](api::Client& client) { return client.machine_types(); }));
        MUSTER_TRY(const std::vector<std::string> pools, read_pools(connection));
        MUSTER_CHECK(types.empty() ? print_line("No data found")
                                   : show_table(machine_type_table(types, pools)));
        return cli::kExitDone;
      });
}

// secrets: sets, lists and deletes secrets of a project. (Gradient also has secrets of teams and of
// clusters.)

namespace {

constexpr size_t kMostSecretBytes = 64 << 10;

/// The project of --id, or the project in use. Other owners of secrets are reported as faults.
std::string project_of(Invocation& invocation) {
  const std::vector<std::string>& names = invocation.arguments.names;
  const std::string owner = names.empty() ? "" : names.front();
  if (owner.empty()) {
    invocation.reader.fault("project", "is missing; give the owner of the secrets: project");
  } else if (owner == "team" || owner == "cluster") {
    invocation.reader.fault(owner, "cannot own secrets in Muster; projects can: gradient secrets " +
                                       invocation.path.back() + " project --id PROJECT");
  } else if (owner != "project") {
    invocation.reader.fault("", "'" + owner + "' cannot own secrets; did you mean 'project'?");
  }
  const std::string in_use = invocation.caller.project;
  return invocation.reader.text("--id",
                                in_use.empty() ? std::string(job::kDefaultProject) : in_use);
}

/// From a pipe, one newline at the end is removed. Nothing: Ctrl-C.
Result<std::optional<std::string>> value_of(const Invocation& invocation, const std::string& name) {
  if (invocation.reader.has("--value")) {
    note(
        "other users of this machine can see --value; without it, the value is read from a prompt "
        "or a pipe");
    return std::optional(invocation.reader.text("--value"));
  }
  if (::isatty(STDIN_FILENO) == 1) {
    cli::Interrupts interrupts;
    return cli::ask(STDIN_FILENO, "Value of " + name + " (not shown): ", cli::Echo::kOff,
                    interrupts);
  }
  MUSTER_TRY(std::string text, cli::read_to_end(STDIN_FILENO, kMostSecretBytes));
  return std::optional(cli::without_last_newline(std::move(text)));
}

}  // namespace

Result<int> set_secret(Invocation& invocation) {
  const std::string project = project_of(invocation);
  const std::string name = required(invocation, "--name", "name the secret");
  if (!invocation.reader.ok()) return faults_of(invocation);
  MUSTER_TRY(const auto value, value_of(invocation, name));
  if (!value) return cli::kExitInterrupted;
  if (value->empty())
    invocation.reader.fault("--value", "is empty; to remove the secret: gradient secrets delete");
  return with_server(
      invocation, kUpdate, "Project", [&](cli::Connection& connection) -> Result<int> {
        MUSTER_CHECK(connection.call(
            [&](api::Client& client) { return client.set_secret(project, name, *value); }));
        MUSTER_CHECK(print_line("Set project secret '" + name + "'"));
        return cli::kExitDone;
      });
}

Result<int> list_secrets(Invocation& invocation) {
  const std::string project = project_of(invocation);
  return with_server(
      invocation, kFetch, "Project", [&](cli::Connection& connection) -> Result<int> {
        MUSTER_TRY(const std::vector<access::Secret> secrets,
                   connection.call([&](api::Client& client) { return client.secrets(project); }));
        AsciiTable table;
        table.add({"Name"});
        for (const access::Secret& secret : secrets) table.add({secret.name});
        MUSTER_CHECK(secrets.empty() ? print_line("No data found") : show_table(table));
        return cli::kExitDone;
      });
}

Result<int> delete_secret(Invocation& invocation) {
  const std::string project = project_of(invocation);
  const std::string name = required(invocation, "--name", "name the secret");
  return with_server(invocation, kDelete, "Secret",
                     [&](cli::Connection& connection) -> Result<int> {
                       MUSTER_CHECK(connection.client().remove_secret(project, name));
                       MUSTER_CHECK(print_line("Deleted project secret '" + name + "'"));
                       return cli::kExitDone;
                     });
}

// jobs artifacts list, get and download.

namespace {

/// "train/worker-0" is a task of the experiment "train"; all tasks share the experiment's
/// artifacts.
std::string experiment_in(const std::string& id) {
  return id.substr(0, id.find('/'));
}

/// Gradient's own program has no message for a file of --files that does not exist.
int no_such_artifact(const std::string& id, const std::string& path) {
  note(std::string(kFetch) + "job '" + id + "' has no artifact " + workspace::shown(path) +
       "\nlist its artifacts: gradient jobs artifacts list --id " + base::shell_joined({id}));
  return cli::kExitNotFound;
}

}  // namespace

Result<int> list_artifacts(Invocation& invocation) {
  const std::string id = experiment_in(required(invocation, "--id", "name the job"));
  const std::string prefix = invocation.reader.text("--files");
  const bool with_size = invocation.reader.has("--size");
  return with_server(invocation, kFetch, "Job", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const api::ArtifactPage page,
               cli::files::all_artifacts(connection, id, {.prefix = prefix}));
    if (page.artifacts.empty() && !page.truncated) {
      MUSTER_CHECK(print_line("No artifacts found"));
      return cli::kExitDone;
    }
    AsciiTable table;
    std::vector<AsciiTable::Cell> title{"Files"};
    if (with_size) title.emplace_back("Size (in bytes)");
    table.add(title);
    for (const api::Artifact& each : page.artifacts) {
      std::vector<AsciiTable::Cell> row{cli::files::readable_path(each.path)};
      if (with_size) row.emplace_back(std::to_string(each.bytes));
      table.add(row);
    }
    MUSTER_CHECK(cli::show(table.to_string()));
    if (page.truncated) return cli::files::unlistable_artifacts(id);
    return cli::kExitDone;
  });
}

Result<int> get_artifacts(Invocation& invocation) {
  cli::files::ArtifactGetCommand command{
      .name = experiment_in(required(invocation, "--id", "name the job")),
      .project = {},
      .paths = invocation.reader.texts("--files"),
      .folder = {}};
  command.folder = invocation.reader.text("--destination", command.name + "-artifacts");
  return with_server(invocation, kFetch, "Job", [&](cli::Connection& connection) -> Result<int> {
    const auto result = cli::files::fetch_artifacts(connection, command, "gradient");
    if (!result) {
      const auto* const missing = base::detail_of<cli::files::NoSuchArtifact>(result.error());
      return missing == nullptr ? Result<int>(result.error())
                                : no_such_artifact(command.name, missing->path);
    }
    const cli::files::FetchedArtifacts& fetched = *result;
    const size_t all = fetched.files + fetched.here_already;
    MUSTER_CHECK(print_line(all == 0 ? "No artifacts found"
                                     : workspace::count_text(all, "file", "files") + " in " +
                                           workspace::shown(command.folder)));
    return fetched.failed > 0 ? cli::kExitFailed : cli::kExitDone;
  });
}

}  // namespace muster::dialects::gradient
