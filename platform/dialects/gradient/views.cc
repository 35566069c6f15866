#include "dialects/gradient/views.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "cli/common/job_view.h"
#include "dialects/gradient/gradient.h"

namespace muster::dialects::gradient {

namespace {

AsciiTable::Cell text_or_none(std::string text) {
  return text.empty() ? AsciiTable::Cell() : AsciiTable::Cell(std::move(text));
}

AsciiTable::Cell amount_or_none(int64_t amount) {
  return amount == 0 ? AsciiTable::Cell() : AsciiTable::Cell(std::to_string(amount));
}

std::string machine_flag(const job::JobSpec& spec, job::TaskRole role) {
  switch (role) {
    case job::TaskRole::kSingle:
      return "machineType";
    case job::TaskRole::kLauncher:
    case job::TaskRole::kMaster:
      return "masterMachineType";
    case job::TaskRole::kParameterServer:
      return "parameterServerMachineType";
    case job::TaskRole::kEvaluator:
      return "evaluatorMachineType";  // no experiment sets it
    case job::TaskRole::kWorker:
    case job::TaskRole::kChief:
      break;
  }
  return spec.kind == job::Kind::kSingle ? "machineType" : "workerMachineType";
}

}  // namespace

AsciiTable::Cell flag_value(const job::JobSpec& spec, const std::string& flag) {
  const auto found = spec.annotations.find(kAnnotation + flag);
  return found == spec.annotations.end() ? AsciiTable::Cell() : text_or_none(found->second);
}

std::string experiment_name(const job::Job& job) {
  return flag_value(job.spec, "name").value_or(job.spec.name);
}

AsciiTable experiment_table(const std::vector<job::Job>& jobs) {
  AsciiTable table;
  table.add({"Name", "ID", "Status"});
  for (const job::Job& job : jobs) {
    table.add({experiment_name(job), job.id, std::string(state_of(job))});
  }
  return table;
}

std::string id_of_task(const job::Job& job, const job::Task& task) {
  return job.id + "/" + task.name;
}

AsciiTable job_table(const std::vector<job::Job>& jobs) {
  AsciiTable table;
  table.add({"ID", "Name", "Project", "Cluster", "Machine Type", "Created"});
  for (const job::Job& job : jobs) {
    for (const job::Task& task : job.tasks) {
      table.add({id_of_task(job, task), experiment_name(job) + " " + task.name, job.spec.project,
                 flag_value(job.spec, "clusterId"),
                 flag_value(job.spec, machine_flag(job.spec, task.role)),
                 base::to_rfc3339(job.submitted)});
    }
  }
  return table;
}

AsciiTable project_table(const std::vector<job::ProjectStatus>& projects) {
  AsciiTable table;
  table.add({"ID", "Name", "Repository", "Created"});
  for (const job::ProjectStatus& status : projects) {
    // "2026-01-31 12:00:00.000000", as formatted by Python's strftime.
    constexpr int kMicroseconds = 6;
    std::string created = base::to_rfc3339(status.project.created, kMicroseconds);
    std::replace(created.begin(), created.end(), 'T', ' ');
    created.pop_back();
    table.add({status.project.name, status.project.name, std::nullopt, created});
  }
  return table;
}

AsciiTable project_details(const job::Project& project) {
  AsciiTable table;
  table.add({"Name", project.name});
  table.add({"ID", project.name});
  table.add({"Repository name", std::nullopt});
  table.add({"Repository url", std::nullopt});
  table.add({"Tags", ""});
  return table;
}

AsciiTable cluster_table(const std::vector<std::string>& pools) {
  AsciiTable table;
  table.add({"ID", "Name", "Type"});
  for (const std::string& pool : pools) table.add({pool, pool, "muster"});
  return table;
}

std::vector<std::string> pools_of(const std::vector<job::Node>& nodes) {
  std::set<std::string> pools;
  for (const job::Node& node : nodes) pools.insert(node.pool);
  return {pools.begin(), pools.end()};
}

AsciiTable machine_type_table(const job::MachineTypes& types,
                              const std::vector<std::string>& pools) {
  constexpr int64_t kMilli = 1000;
  AsciiTable table;
  table.add({"Name", "Kind", "CPU Count", "RAM [Bytes]", "GPU Count", "GPU Model", "Clusters"});
  for (const auto& [name, type] : types) {
    const job::Resources& claim = type.resources;
    table.add({name, claim.gpus > 0 ? "gpu" : "cpu", amount_or_none(claim.cpu_milli / kMilli),
               amount_or_none(claim.memory_bytes), std::to_string(claim.gpus),
               type.gpu_model.empty() ? "N/A" : type.gpu_model, base::joined(pools)});
  }
  return table;
}

namespace {

bool is_ending(const job::Job& job) {
  return job.stop_requested || job.eviction.has_value();
}

std::string_view state_in_queue(const job::Job& job) {
  const bool never_released = job.spec.held && job.suspended && job.attempt == 0;
  return never_released ? "created" : "pending";
}

std::string_view state_at_start(const job::Job& job) {
  if (is_ending(job)) return "network teardown";
  const bool some_run = std::any_of(job.tasks.begin(), job.tasks.end(), [](const job::Task& task) {
    return task.phase == job::TaskPhase::kRunning;
  });
  return some_run ? "network setup" : "provisioning";
}

std::string_view state_while_running(const job::Job& job) {
  const bool leader_ended =
      !job.tasks.empty() && job::deciding_task(job).phase == job::TaskPhase::kEnded;
  return leader_ended || is_ending(job) ? "network teardown" : "running";
}

}  // namespace

std::string_view state_of(const job::Job& job) {
  switch (job.phase) {
    case job::Phase::kQueued:
      return state_in_queue(job);
    case job::Phase::kStarting:
      return state_at_start(job);
    case job::Phase::kRunning:
      return state_while_running(job);
    case job::Phase::kSucceeded:
      return "stopped";
    case job::Phase::kFailed:
      return has_started(job) ? "failed" : "error";
    case job::Phase::kStopped:
      return has_started(job) ? "stopped" : "canceled";
  }
  return "undefined";
}

bool has_started(const job::Job& job) {
  return job.started.has_value();
}

// One experiment, by its type: views.h has what this file defines.

namespace {

using Row = std::pair<std::string, AsciiTable::Cell>;
using Rows = std::vector<Row>;

AsciiTable::Cell first_of(AsciiTable::Cell given, std::string otherwise) {
  if (given) return given;
  return otherwise.empty() ? AsciiTable::Cell() : AsciiTable::Cell(std::move(otherwise));
}

std::string command_line(const std::vector<std::string>& command,
                         const std::vector<std::string>& arguments = {}) {
  std::vector<std::string> all = command;
  all.insert(all.end(), arguments.begin(), arguments.end());
  return base::shell_joined(all);
}

/// Labels without a value.
std::string tags_of(const job::JobSpec& spec) {
  std::string tags;
  for (const auto& [name, value] : spec.labels) {
    if (value.empty()) tags += (tags.empty() ? "" : ", ") + name;
  }
  return tags;
}

/// The flag as typed. For a job submitted by other means, its variables, and secrets by their
/// names.
AsciiTable::Cell environment_cell(const job::JobSpec& spec) {
  if (const AsciiTable::Cell json = flag_value(spec, "experimentEnv")) {
    return python_literal(*json).value_or(*json);
  }
  if (flag_value(spec, "experimentType")) return std::nullopt;
  std::map<std::string, std::string> values = spec.environment;
  for (const job::SecretUse& use : spec.secrets) {
    if (!use.variable.empty()) values[use.variable] = "secret:" + use.name;
  }
  return values.empty() ? AsciiTable::Cell() : AsciiTable::Cell(python_literal(values));
}

AsciiTable::Cell working_directory(const job::JobSpec& spec) {
  if (flag_value(spec, "experimentType")) return flag_value(spec, "workingDirectory");
  return first_of(flag_value(spec, "workingDirectory"), spec.folder);
}

/// By any of the names that the flag has had over the years.
AsciiTable::Cell workspace(const job::JobSpec& spec) {
  for (const char* flag : {"workspace", "workspaceUrl", "workspaceArchive"}) {
    if (AsciiTable::Cell url = flag_value(spec, flag)) return url;
  }
  return std::nullopt;
}

Rows identity(const job::Job& job) {
  return {{"Name", experiment_name(job)}, {"ID", job.id}, {"State", std::string(state_of(job))}};
}

/// The first rows of both types of multi-node experiments.
Rows shared_head(const job::Job& job, const std::string& type) {
  const job::JobSpec& spec = job.spec;
  Rows rows = identity(job);
  rows.insert(rows.end(), {{"Artifact directory", flag_value(spec, "artifactDirectory")},
                           {"Cluster ID", flag_value(spec, "clusterId")},
                           {"Experiment Env", environment_cell(spec)},
                           {"Experiment Type", type},
                           {"Model Type", flag_value(spec, "modelType")},
                           {"Model Path", flag_value(spec, "modelPath")}});
  return rows;
}

/// The last rows. `count`: the number of workers as Gradient counts them.
Rows shared_tail(const job::JobSpec& spec, const std::string& worker_command, int count) {
  return {{"Ports", flag_value(spec, "ports")},
          {"Project ID", spec.project},
          {"Worker Command", first_of(flag_value(spec, "workerCommand"), worker_command)},
          {"Worker Container", first_of(flag_value(spec, "workerContainer"), spec.image)},
          {"Worker Count", first_of(flag_value(spec, "workerCount"), std::to_string(count))},
          {"Worker Machine Type", flag_value(spec, "workerMachineType")},
          {"Working Directory", working_directory(spec)},
          {"Workspace URL", workspace(spec)},
          {"Tags", tags_of(spec)}};
}

Rows single_rows(const job::Job& job) {
  const job::JobSpec& spec = job.spec;
  Rows rows = identity(job);
  rows.insert(rows.end(),
              {{"Ports", flag_value(spec, "ports")},
               {"Project ID", spec.project},
               {"Worker Command",
                first_of(flag_value(spec, "command"), command_line(spec.command, spec.arguments))},
               {"Worker Container", first_of(flag_value(spec, "container"), spec.image)},
               {"Worker Machine Type", flag_value(spec, "machineType")},
               {"Working Directory", working_directory(spec)},
               {"Workspace URL", workspace(spec)},
               {"Model Type", flag_value(spec, "modelType")},
               {"Model Path", flag_value(spec, "modelPath")},
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
      {{"Parameter Server Command",
        first_of(flag_value(spec, "parameterServerCommand"), server_command)},
       {"Parameter Server Container", first_of(flag_value(spec, "parameterServerContainer"),
                                               server.image.empty() ? spec.image : server.image)},
       {"Parameter Server Count",
        first_of(flag_value(spec, "parameterServerCount"), std::to_string(spec.parameter_servers))},
       {"Parameter Server Machine Type", flag_value(spec, "parameterServerMachineType")}});
  const Rows tail = shared_tail(spec, command, spec.workers + 1);  // the chief counts as a worker
  rows.insert(rows.end(), tail.begin(), tail.end());
  return rows;
}

/// `type`: MPI, or torch, which Gradient does not have but which has a master, too.
Rows mastered_rows(const job::Job& job, const std::string& type) {
  const job::JobSpec& spec = job.spec;
  const std::string command = command_line(spec.command, spec.arguments);
  Rows rows = shared_head(job, type);
  rows.insert(rows.end(), {{"Master Command", first_of(flag_value(spec, "masterCommand"), command)},
                           {"Master Container",
                            first_of(flag_value(spec, "masterContainer"),
                                     spec.leader.image.empty() ? spec.image : spec.leader.image)},
                           {"Master Count", first_of(flag_value(spec, "masterCount"), "1")},
                           {"Master Machine Type", flag_value(spec, "masterMachineType")}});
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

namespace {

using nlohmann::ordered_json;  // keeps the order of keys, as Python does

void append_escaped(std::string& out, char letter, char quote) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(letter);
  if (letter == quote || letter == '\\') {
    out += '\\';
    out += letter;
  } else if (letter == '\n') {
    out += "\\n";
  } else if (letter == '\r') {
    out += "\\r";
  } else if (letter == '\t') {
    out += "\\t";
  } else if (code < 0x20 || code == 0x7f) {
    out += "\\x";
    out += kDigits[code >> 4];
    out += kDigits[code & 15];
  } else {
    out += letter;
  }
}

/// In single quotes, unless that needs more escapes.
void append_text(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (const char letter : text) append_escaped(out, letter, quote);
  out += quote;
}

void append(std::string& out, const ordered_json& json);

void append_items(std::string& out, const ordered_json& json) {
  const char* separator = "";
  for (const auto& [key, value] : json.items()) {
    out += std::exchange(separator, ", ");
    if (json.is_object()) {
      append_text(out, key);
      out += ": ";
    }
    append(out, value);
  }
}

void append(std::string& out, const ordered_json& json) {
  if (json.is_null()) {
    out += "None";
  } else if (json.is_boolean()) {
    out += json.get<bool>() ? "True" : "False";
  } else if (json.is_string()) {
    append_text(out, json.get_ref<const std::string&>());
  } else if (json.is_structured()) {
    out += json.is_object() ? '{' : '[';
    append_items(out, json);
    out += json.is_object() ? '}' : ']';
  } else {
    out += base::json_text(json);
  }
}

}  // namespace

std::optional<std::string> python_literal(std::string_view text) {
  const ordered_json json = base::parse_ordered_json(text);
  if (json.is_discarded()) return std::nullopt;
  std::string out;
  append(out, json);
  return out;
}

std::string python_literal(const std::map<std::string, std::string>& values) {
  std::string out = "{";
  for (const auto& [key, value] : values) {
    if (out.size() > 1) out += ", ";
    append_text(out, key);
    out += ": ";
    append_text(out, value);
  }
  return out + "}";
}

}  // namespace muster::dialects::gradient
