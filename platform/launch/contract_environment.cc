#include "launch/contract_environment.h"

#include <algorithm>
#include <string_view>

#include "launch/devices.h"

namespace muster::launch {

using job::Job;
using job::Volume;

namespace {

constexpr std::string_view kGradient = "gradient/";
constexpr const char* kStorage = "/storage";

/// worker-1: "1"; a leader, of which there is one: "0".
std::string index_in_role(const std::string& task) {
  const size_t dash = task.rfind('-');
  return dash == std::string::npos ? "0" : task.substr(dash + 1);
}

bool speaks_gradient(const job::JobSpec& spec) {
  const auto first = spec.annotations.lower_bound(std::string(kGradient));
  return first != spec.annotations.end() && first->first.starts_with(kGradient);
}

bool has_storage(const job::JobSpec& spec) {
  return std::any_of(spec.volumes.begin(), spec.volumes.end(), [](const Volume& volume) {
    return volume.kind == Volume::Kind::kStorage && volume.target == kStorage;
  });
}

std::string model_path(const Job& job) {
  const auto said = job.spec.annotations.find("gradient/modelPath");
  if (said != job.spec.annotations.end() && !said->second.empty()) return said->second;
  if (job.spec.kind == job::Kind::kSingle) return "/artifacts";
  return std::string(kStorage) + "/models/" + job.id;
}

}  // namespace

std::map<std::string, std::string> contract_environment(const Job& job, const job::Task& task) {
  std::map<std::string, std::string> variables{
      {"JOB_NAME", job.spec.name},
      {"JOB_UUID", job.id},
      {"POD_INDEX", index_in_role(task.name)},
      {"POD_UUID", job.id + "-" + std::to_string(job.attempt) + "-" + task.name},
      {"NODE_NAME", task.node},
      {"RUNAI_PROJECT", job.spec.project},
      {"RUNAI_JOB_NAME", job.spec.name},
      {"RUNAI_JOB_UUID", job.id},
      {"RUNAI_NUM_OF_GPUS", gpus_text(task)},
  };
  if (speaks_gradient(job.spec)) {
    variables["PAPERSPACE_EXPERIMENT_ID"] = job.id;
    variables["PAPERSPACE_METRIC_WORKLOAD_ID"] = job.id;
  }
  if (has_storage(job.spec)) {
    variables["PS_JOBSPACE"] = kStorage;
    variables["PS_MODEL_PATH"] = model_path(job);
  }
  return variables;
}

}  // namespace muster::launch
