#include "engine/slurm/node/plan_here.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace muster::engine::slurm {

namespace {

constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";

/// Empty: one of them is none that Slurm gave.
std::vector<std::string> names_of(const std::vector<int>& devices, const StepFacts& facts) {
  std::vector<std::string> names;
  for (const int device : devices) {
    const auto found = std::find(facts.gpu_indices.begin(), facts.gpu_indices.end(), device);
    const auto at = static_cast<size_t>(found - facts.gpu_indices.begin());
    if (at >= facts.gpus.size()) return {};
    names.push_back(facts.gpus[at]);
  }
  return names;
}

}  // namespace

launch::TaskPlan plan_here(launch::TaskPlan plan, const StepFacts& facts) {
  plan.resources.cpu_milli = 0;
  plan.resources.memory_bytes = 0;
  std::vector<std::string> names = names_of(plan.devices, facts);
  if (names.empty()) return plan;
  plan.environment[kVisibleDevices] = base::joined(names, ",");
  plan.gpus = std::move(names);
  return plan;
}

}  // namespace muster::engine::slurm
