// secrets: set, list and delete those of a project. (Gradient has some of teams and of clusters,
// too.)
#include <unistd.h>

#include <optional>

#include "cli/common/interrupts.h"
#include "cli/common/report.h"
#include "cli/common/typed_input.h"
#include "dialects/gradient/ascii_table.h"
#include "dialects/gradient/command_parts.h"
#include "dialects/gradient/pager.h"
#include "job/project.h"

namespace muster::dialects::gradient {

namespace {

constexpr size_t kMostSecretBytes = 64 << 10;

/// The project, by --id or that in use. Whatever else may own secrets is a fault.
std::string project_of(Asked& asked) {
  const std::vector<std::string>& names = asked.arguments.names;
  const std::string owner = names.empty() ? "" : names.front();
  if (owner.empty()) {
    asked.reader.fault("project", "is missing; say whose secrets: project");
  } else if (owner == "team" || owner == "cluster") {
    asked.reader.fault(owner, "has no secrets here; projects have: gradient secrets " +
                                  asked.path.back() + " project --id PROJECT");
  } else if (owner != "project") {
    asked.reader.fault("", "'" + owner + "' owns no secrets; did you mean 'project'?");
  }
  const std::string in_use = asked.caller.project;
  return asked.reader.text("--id", in_use.empty() ? std::string(job::kDefaultProject) : in_use);
}

/// Of what comes through a pipe, a last newline is the pipe's. Nothing: Ctrl-C.
Result<std::optional<std::string>> value_of(const Asked& asked, const std::string& name) {
  if (asked.reader.has("--value")) {
    note(
        "others on this machine can see --value; without it, you are asked, or it is read from "
        "a pipe");
    return std::optional(asked.reader.text("--value"));
  }
  if (::isatty(STDIN_FILENO) == 1) {
    cli::Interrupts interrupts;
    return cli::ask(STDIN_FILENO, "Value of " + name + " (it is not shown): ", cli::Echo::kOff,
                    interrupts);
  }
  MUSTER_TRY(std::string text, cli::read_to_end(STDIN_FILENO, kMostSecretBytes));
  return std::optional(cli::without_last_newline(std::move(text)));
}

}  // namespace

Result<int> set_secret(Asked& asked) {
  const std::string project = project_of(asked);
  const std::string name = required(asked, "--name", "say which secret");
  if (!asked.reader.ok()) return faults_of(asked);
  MUSTER_TRY(const auto value, value_of(asked, name));
  if (!value) return cli::kExitInterrupted;
  if (value->empty()) asked.reader.fault("--value", "is empty; to remove it: secrets delete");
  return with_server(asked, kUpdate, "Project", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_CHECK(connection.call(
        [&](api::Client& client) { return client.set_secret(project, name, *value); }));
    MUSTER_CHECK(say("Set project secret '" + name + "'"));
    return cli::kExitDone;
  });
}

Result<int> list_secrets(Asked& asked) {
  const std::string project = project_of(asked);
  return with_server(asked, kFetch, "Project", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const std::vector<access::Secret> secrets,
               connection.call([&](api::Client& client) { return client.secrets(project); }));
    AsciiTable table;
    table.add({"Name"});
    for (const access::Secret& secret : secrets) table.add({secret.name});
    MUSTER_CHECK(secrets.empty() ? say("No data found") : show_table(table));
    return cli::kExitDone;
  });
}

Result<int> delete_secret(Asked& asked) {
  const std::string project = project_of(asked);
  const std::string name = required(asked, "--name", "say which secret");
  return with_server(asked, kDelete, "Secret", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_CHECK(connection.client().remove_secret(project, name));
    MUSTER_CHECK(say("Deleted project secret '" + name + "'"));
    return cli::kExitDone;
  });
}

}  // namespace muster::dialects::gradient
