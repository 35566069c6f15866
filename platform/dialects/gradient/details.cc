// One experiment, by its type: views.h has what this file defines.
#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "cli/common/job_words.h"
#include "dialects/gradient/python_literal.h"
#include "dialects/gradient/state.h"
#include "dialects/gradient/views.h"

namespace muster::dialects::gradient {

namespace {

using Row = std::pair<std::string, AsciiTable::Cell>;
using Rows = std::vector<Row>;

AsciiTable::Cell first_of(AsciiTable::Cell said, std::string otherwise) {
  if (said) return said;
  return otherwise.empty() ? AsciiTable::Cell() : AsciiTable::Cell(std::move(otherwise));
}

std::string command_line(const std::vector<std::string>& command,
                         const std::vector<std::string>& arguments = {}) {
  std::vector<std::string> all = command;
  all.insert(all.end(), arguments.begin(), arguments.end());
  return base::shell_joined(all);
}

/// Labels that have no value.
std::string tags_of(const job::JobSpec& spec) {
  std::string tags;
  for (const auto& [name, value] : spec.labels) {
    if (value.empty()) tags += (tags.empty() ? "" : ", ") + name;
  }
  return tags;
}

/// As it was said. Of a job that was submitted otherwise, its variables; secrets by their names.
AsciiTable::Cell environment_cell(const job::JobSpec& spec) {
  if (const AsciiTable::Cell json = said(spec, "experimentEnv")) {
    return python_literal(*json).value_or(*json);
  }
  if (said(spec, "experimentType")) return std::nullopt;
  std::map<std::string, std::string> values = spec.environment;
  for (const job::SecretUse& use : spec.secrets) {
    if (!use.variable.empty()) values[use.variable] = "secret:" + use.name;
  }
  return values.empty() ? AsciiTable::Cell() : AsciiTable::Cell(python_literal(values));
}

AsciiTable::Cell working_directory(const job::JobSpec& spec) {
  if (said(spec, "experimentType")) return said(spec, "workingDirectory");
  return first_of(said(spec, "workingDirectory"), spec.folder);
}

/// By any of the names that the flag had over the years.
AsciiTable::Cell workspace(const job::JobSpec& spec) {
  for (const char* flag : {"workspace", "workspaceUrl", "workspaceArchive"}) {
    if (AsciiTable::Cell url = said(spec, flag)) return url;
  }
  return std::nullopt;
}

Rows identity(const job::Job& job) {
  return {{"Name", experiment_name(job)}, {"ID", job.id}, {"State", std::string(state_of(job))}};
}

/// What both kinds of multi node experiments begin with.
Rows shared_head(const job::Job& job, const std::string& type) {
  const job::JobSpec& spec = job.spec;
  Rows rows = identity(job);
  rows.insert(rows.end(), {{"Artifact directory", said(spec, "artifactDirectory")},
                           {"Cluster ID", said(spec, "clusterId")},
                           {"Experiment Env", environment_cell(spec)},
                           {"Experiment Type", type},
                           {"Model Type", said(spec, "modelType")},
                           {"Model Path", said(spec, "modelPath")}});
  return rows;
}

/// What they end with. `count`: of workers, as Gradient counts them.
Rows shared_tail(const job::JobSpec& spec, const std::string& worker_command, int count) {
  return {{"Ports", said(spec, "ports")},
          {"Project ID", spec.project},
          {"Worker Command", first_of(said(spec, "workerCommand"), worker_command)},
          {"Worker Container", first_of(said(spec, "workerContainer"), spec.image)},
          {"Worker Count", first_of(said(spec, "workerCount"), std::to_string(count))},
          {"Worker Machine Type", said(spec, "workerMachineType")},
          {"Working Directory", working_directory(spec)},
          {"Workspace URL", workspace(spec)},
          {"Tags", tags_of(spec)}};
}

Rows single_rows(const job::Job& job) {
  const job::JobSpec& spec = job.spec;
  Rows rows = identity(job);
  rows.insert(rows.end(), {{"Ports", said(spec, "ports")},
                           {"Project ID", spec.project},
                           {"Worker Command", first_of(said(spec, "command"),
                                                       command_line(spec.command, spec.arguments))},
                           {"Worker Container", first_of(said(spec, "container"), spec.image)},
                           {"Worker Machine Type", said(spec, "machineType")},
                           {"Working Directory", working_directory(spec)},
                           {"Workspace URL", workspace(spec)},
                           {"Model Type", said(spec, "modelType")},
                           {"Model Path", said(spec, "modelPath")},
                           {"Tags", tags_of(spec)}});
  return rows;
}

Rows grpc_rows(const job::Job& job) {
  const job::JobSpec& spec = job.spec;
  const job::RoleSpec& server = spec.parameter_server;
  const std::string command = command_line(spec.command, spec.arguments);
  const std::string server_command =
      server.command.empty() ? command : command_line(server.command, server.arguments);
  Rows rows = shared_head(job, "GRPC multi node");
  rows.insert(
      rows.end(),
      {{"Parameter Server Command", first_of(said(spec, "parameterServerCommand"), server_command)},
       {"Parameter Server Container", first_of(said(spec, "parameterServerContainer"),
                                               server.image.empty() ? spec.image : server.image)},
       {"Parameter Server Count",
        first_of(said(spec, "parameterServerCount"), std::to_string(spec.parameter_servers))},
       {"Parameter Server Machine Type", said(spec, "parameterServerMachineType")}});
  const Rows tail = shared_tail(spec, command, spec.workers + 1);  // the chief is a worker, too
  rows.insert(rows.end(), tail.begin(), tail.end());
  return rows;
}

/// `type`: of MPI, and of torch, which Gradient does not know but which has a master as well.
Rows mastered_rows(const job::Job& job, const std::string& type) {
  const job::JobSpec& spec = job.spec;
  const std::string command = command_line(spec.command, spec.arguments);
  Rows rows = shared_head(job, type);
  rows.insert(rows.end(), {{"Master Command", first_of(said(spec, "masterCommand"), command)},
                           {"Master Container",
                            first_of(said(spec, "masterContainer"),
                                     spec.leader.image.empty() ? spec.image : spec.leader.image)},
                           {"Master Count", first_of(said(spec, "masterCount"), "1")},
                           {"Master Machine Type", said(spec, "masterMachineType")}});
  const std::string worker_command =
      spec.kind == job::Kind::kMpi ? command_line(spec.worker_command) : command;
  const Rows tail = shared_tail(spec, worker_command, spec.workers);
  rows.insert(rows.end(), tail.begin(), tail.end());
  return rows;
}

Rows rows_of(const job::Job& job) {
  switch (job.spec.kind) {
    case job::Kind::kGrpc:
      return grpc_rows(job);
    case job::Kind::kMpi:
      return mastered_rows(job, "MPI multi node");
    case job::Kind::kTorch:
      return mastered_rows(job, "torch multi node");
    case job::Kind::kSingle:
      break;
  }
  return single_rows(job);
}

}  // namespace

AsciiTable experiment_details(const job::Job& job) {
  AsciiTable table;
  for (const auto& [key, value] : rows_of(job)) table.add({key, value});
  if (const std::string launch = cli::launch_words(job); !launch.empty()) {
    table.add({"Launch", launch});
  }
  return table;
}

}  // namespace muster::dialects::gradient
