#include "engine/slurm/rest_request.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/slurm/submission.h"

namespace muster::engine::slurm {

using nlohmann::json;

namespace {

json number(int64_t value, const RestDialect& dialect) {
  if (!dialect.wraps_numbers) return value;
  return {{"set", true}, {"infinite", false}, {"number", value}};
}

json environment_of(const Submission& submission, const RestDialect& dialect) {
  json result = dialect.lists ? json::array() : json::object();
  for (const auto& [name, value] : submission.environment) {
    if (dialect.lists) {
      result.push_back(name + "=" + value);
    } else {
      result[name] = value;
    }
  }
  return result;
}

json excluded(const std::vector<std::string>& nodes, const RestDialect& dialect) {
  if (dialect.lists) return nodes;
  return base::joined(nodes, ",");
}

/// A component with a minimum requests as many tasks as the fewest nodes hold: Slurm derives the
/// required resources from them, and allocates more nodes if they are available.
void put_tasks(json& job, const Component& component, const RestDialect& dialect) {
  const int most = most_nodes(component);
  const int least = least_nodes(component);
  job["tasks"] = least == most ? component.tasks : least * component.tasks_per_node;
  job["tasks_per_node"] = component.tasks_per_node;
  if (dialect.counts_nodes) {
    job["minimum_nodes"] = least;
    job["maximum_nodes"] = most;
  } else {
    job["nodes"] = std::to_string(least) + "-" + std::to_string(most);
  }
}

json job_of(const Submission& submission, const Component& component, const RestDialect& dialect) {
  json job{{"name", submission.name},
           {"comment", submission.comment},
           {"current_working_directory", submission.folder},
           {std::string(dialect.output), submission.output},
           {"standard_error", submission.output},
           {"open_mode", dialect.lists ? json::array({"APPEND"}) : json("append")},
           {"environment", environment_of(submission, dialect)},
           // If Slurm takes the nodes away, the job is queued again and keeps its place.
           {"requeue", true}};
  const auto put = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) job[std::string(name)] = value;
  };
  put("partition", submission.partition);
  put("account", submission.account);
  put("qos", submission.qos);
  put("reservation", submission.reservation);
  put("constraints", submission.constraint);
  if (!submission.excluded_nodes.empty()) {
    job[std::string(dialect.excluded_nodes)] = excluded(submission.excluded_nodes, dialect);
  }
  if (submission.time_limit) {
    job["time_limit"] = number(std::max<int64_t>(submission.time_limit->count(), 1), dialect);
  }
  put_tasks(job, component, dialect);
  if (component.cpus_per_task > 0) job["cpus_per_task"] = component.cpus_per_task;
  if (component.memory_bytes_per_node > 0) {
    const int64_t mebibytes = (component.memory_bytes_per_node - 1) / kMebibyte + 1;
    job["memory_per_node"] = number(mebibytes, dialect);
  }
  if (component.gpus_per_node > 0) {
    const std::string type = component.gpu_type.empty() ? "" : component.gpu_type + ":";
    job[std::string(dialect.gpus)] =
        std::string(dialect.gpus_prefix) + type + std::to_string(component.gpus_per_node);
  }
  return job;
}

/// Invalid UTF-8 is replaced, since JSON allows only UTF-8.
std::string dumped(const json& body) {
  return base::json_text(body);
}

}  // namespace

std::string rest_submit_body(const Submission& submission, const RestDialect& dialect) {
  json jobs = json::array();
  for (const Component& component : submission.components) {
    jobs.push_back(job_of(submission, component, dialect));
  }
  json body = json::object();
  if (dialect.script_in_job && !jobs.empty()) {
    jobs.front()["script"] = submission.script;
  } else {
    body["script"] = submission.script;
  }
  if (jobs.size() == 1) {
    body["job"] = std::move(jobs.front());
  } else {
    body["jobs"] = std::move(jobs);
  }
  return dumped(body);
}

std::string rest_cancel_body(const std::vector<uint64_t>& ids) {
  json jobs = json::array();
  for (const uint64_t id : ids) jobs.push_back(std::to_string(id));
  return dumped({{"jobs", std::move(jobs)}, {"signal", "SIGKILL"}});
}

namespace {

constexpr std::string_view kPrefix = "v0.0.";

/// Ascending. A version uses the last dialect that is not newer.
constexpr std::array kDialects{
    RestDialect{.first = 36,
                .excluded_nodes = "exclude_nodes",
                .output = "standard_out",
                .gpus = "gpus_per_node"},
    RestDialect{.first = 37,
                .excluded_nodes = "exclude_nodes",
                .output = "standard_output",
                .gpus = "gpus_per_node"},
    RestDialect{.first = 39,
                .wraps_numbers = true,
                .lists = true,
                .counts_nodes = true,
                .excluded_nodes = "excluded_nodes",
                .output = "standard_output",
                .gpus = "tres_per_node",
                .gpus_prefix = "gres:gpu:"},
    RestDialect{.first = 40,
                .wraps_numbers = true,
                .lists = true,
                .script_in_job = true,
                .counts_nodes = true,
                .excluded_nodes = "excluded_nodes",
                .output = "standard_output",
                .gpus = "tres_per_node",
                .gpus_prefix = "gres/gpu:",
                .without_details = "?flags=ALL"},
    RestDialect{.first = 41,
                .wraps_numbers = true,
                .lists = true,
                .script_in_job = true,
                .counts_nodes = true,
                .excluded_nodes = "excluded_nodes",
                .output = "standard_output",
                .gpus = "tres_per_node",
                .gpus_prefix = "gres/gpu:",
                .without_details = "?flags=ALL",
                .reports_changes = true},
};

bool serves(const RestPaths& paths, const std::string& what) {
  return std::find(paths.served.begin(), paths.served.end(), what) != paths.served.end();
}

/// Some versions require a slash at the end of collections, and answer 404 without it.
std::string path_of(const RestPaths& paths, const std::string& path) {
  return serves(paths, path + "/ GET") ? path + "/" : path;
}

}  // namespace

const RestDialect& dialect_of(int version) {
  const auto next = std::find_if(kDialects.begin(), kDialects.end(),
                                 [&](const RestDialect& one) { return one.first > version; });
  return next == kDialects.begin() ? *next : *std::prev(next);
}

std::string rest_version_name(int version) {
  return std::string(kPrefix) + std::to_string(version);
}

int rest_version_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return 0;
  const auto number = base::number_of<int>(name.substr(kPrefix.size()));
  return number && *number > 0 ? *number : 0;
}

RestInterface choose_interface(const RestPaths& paths, int newest) {
  RestInterface interface;
  for (const int version : paths.versions) {
    if (version < kOldestRestVersion || version > newest) continue;
    const std::string submit = "/slurm/" + rest_version_name(version) + "/job/submit";
    if (version > interface.version && serves(paths, submit + " POST")) interface.version = version;
  }
  if (interface.version == 0) return interface;
  const std::string name = rest_version_name(interface.version);
  const std::string slurm = "/slurm/" + name;
  const std::string past = "/slurmdb/" + name + "/job/";
  interface.dialect = dialect_of(interface.version);
  interface.jobs = path_of(paths, slurm + "/jobs");
  interface.nodes = path_of(paths, slurm + "/nodes");
  interface.ping = path_of(paths, slurm + "/ping");
  interface.submit = slurm + "/job/submit";
  interface.job = slurm + "/job/";
  if (serves(paths, past + "{job_id} GET")) interface.past_job = past;
  interface.cancels_many = serves(paths, slurm + "/jobs/ DELETE");
  return interface;
}

}  // namespace muster::engine::slurm
