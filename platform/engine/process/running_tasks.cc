#include "engine/process/running_tasks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "engine/shim/plan.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;

namespace {

/// Of a variable that the task was given; empty: it was not.
std::string variable_in(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& line : environment) {
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  }
  return {};
}

/// What its plan says of a task of which nothing else is known.
void read_devices(const ShimPlan& plan, const Node& node, RunningTask& task) {
  const auto names = node.gpu_names;
  for (const std::string& gpu : plan.sampling.gpus) {
    const auto named = std::find(names.begin(), names.end(), gpu);
    int number = static_cast<int>(named - names.begin());
    if (named == names.end()) {
      const auto [end, failed] = std::from_chars(gpu.data(), gpu.data() + gpu.size(), number);
      if (failed != std::errc() || end != gpu.data() + gpu.size()) continue;
    }
    if (number >= 0 && number < node.gpus) task.devices.push_back(number);
  }
  if (task.devices.empty()) return;
  std::sort(task.devices.begin(), task.devices.end());
  constexpr int kWhole = 1000;
  const double share = std::atof(variable_in(plan.inner.environment, "MUSTER_GPU_SHARE").c_str());
  const bool is_part = share > 0 && share < 1;
  task.gpu_share_milli = is_part ? static_cast<int>(std::lround(share * kWhole)) : kWhole;
}

}  // namespace

std::vector<RunningTask> running_tasks_in(const fs::path& jobs_folder, const std::string& job_id,
                                          const Node& node) {
  // An id may be what changed on the disk, and lead out of the folder.
  const bool is_id = !job_id.empty() && std::all_of(job_id.begin(), job_id.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
  });
  std::vector<RunningTask> found;
  std::error_code error;
  if (!is_id) return found;
  for (const auto& attempt : fs::directory_iterator(jobs_folder / job_id, error)) {
    const std::string number = attempt.path().filename();
    Gang gang{.job_id = job_id};
    const char* const behind = number.data() + number.size();
    const auto [end, failed] = std::from_chars(number.data(), behind, gang.attempt);
    if (failed != std::errc() || end != behind) continue;
    for (const auto& each : fs::directory_iterator(attempt.path(), error)) {
      const TaskFolder folder{each.path()};
      if (!fs::exists(folder.lock(), error) || base::lock_file(folder.lock())) continue;
      RunningTask task{.gang = gang, .task = each.path().filename(), .node = node.name};
      const auto text = base::read_file(folder.plan());
      const auto plan = text ? decode_shim_plan(*text) : Result<ShimPlan>(text.error());
      if (plan) read_devices(*plan, node, task);
      found.push_back(std::move(task));
    }
  }
  return found;
}

}  // namespace muster::engine
