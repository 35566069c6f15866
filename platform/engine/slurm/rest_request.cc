#include "engine/slurm/rest_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "engine/slurm/batch_script.h"

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

/// Where fewer tasks would do, so many are asked for as the fewest nodes hold: Slurm counts by them
/// what it needs, and gives more nodes where there are more.
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
           // Where Slurm takes its nodes away, it is put back into the queue and keeps its place.
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

/// What is no UTF-8 becomes a replacement: JSON has no other letters.
std::string dumped(const json& body) {
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
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

}  // namespace muster::engine::slurm
