#include "engine/slurm/node/step_facts.h"

#include <optional>

#include "base/text.h"
#include "base/units.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

std::string variable_text(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

template <class Number>
std::optional<Number> number_in(const Variables& variables, const std::string& name) {
  const auto number = base::number_of<Number>(variable_text(variables, name));
  return number && *number >= 0 ? number : std::nullopt;
}

/// "0,2" and "0-3": Slurm writes both.
std::vector<int> numbers_in(const std::string& text) {
  std::vector<int> numbers;
  for (const std::string& part : base::split(text, ',')) {
    const size_t dash = part.find('-', 1);
    const auto first = base::number_of<int>(part.substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : base::number_of<int>(part.substr(dash + 1));
    constexpr int kMost = 1024;
    if (!first || !last || *first < 0 || *last < *first || *last > kMost) return {};
    for (int number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  return numbers;
}

void read_gpus(const Variables& variables, StepFacts& facts) {
  const std::string visible = variable_text(variables, "CUDA_VISIBLE_DEVICES");
  facts.gpus = base::split(visible, ',');
  // Where a control group holds the job to its GPUs these count from 0, and Slurm's own do not.
  std::vector<std::vector<int>> candidates;
  for (const char* name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}) {
    candidates.push_back(numbers_in(variable_text(variables, name)));
  }
  candidates.push_back(numbers_in(visible));
  for (std::vector<int>& candidate : candidates) {
    if (candidate.empty() || (!facts.gpus.empty() && candidate.size() != facts.gpus.size())) {
      continue;
    }
    facts.gpu_indices = std::move(candidate);
    return;
  }
  const auto on_node = number_in<int>(variables, "SLURM_GPUS_ON_NODE");
  const size_t count =
      facts.gpus.empty() ? static_cast<size_t>(on_node.value_or(0)) : facts.gpus.size();
  for (size_t i = 0; i < count; ++i) facts.gpu_indices.push_back(static_cast<int>(i));
}

/// Ranks count through the components of a step, in their order.
bool find_component(const Variables& variables, int rank, StepFacts& facts) {
  const auto components = number_in<int>(variables, "SLURM_HET_SIZE").value_or(0);
  for (int component = 0; component < components; ++component) {
    const auto tasks =
        number_in<int>(variables, "SLURM_NTASKS_HET_GROUP_" + std::to_string(component));
    if (!tasks) return false;
    if (rank < *tasks) {
      facts.component = component;
      facts.index = rank;
      return true;
    }
    rank -= *tasks;
  }
  facts.component = 0;
  facts.index = rank;
  return components == 0;
}

}  // namespace

Result<StepFacts> read_step_facts(int component, const Variables& variables) {
  const auto rank = number_in<int>(variables, "SLURM_PROCID");
  auto job = number_in<uint64_t>(variables, "SLURM_HET_JOB_ID");
  if (!job) job = number_in<uint64_t>(variables, "SLURM_JOB_ID");
  StepFacts facts{.component = component, .index = rank.value_or(0), .node = {}};
  const bool is_found = rank && job && (component >= 0 || find_component(variables, *rank, facts));
  if (!is_found) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "this is no task that srun has started",
                 .advice = "muster-node is started by the server, in jobs that it gives to Slurm"};
  }
  facts.slurm_job = *job;
  facts.restarts = number_in<int>(variables, "SLURM_RESTART_COUNT").value_or(0);
  facts.node = variable_text(variables, "SLURMD_NODENAME");
  read_gpus(variables, facts);
  return facts;
}

Variables variables_of(const std::vector<std::string>& environment) {
  Variables variables;
  for (const std::string& line : environment) {
    const size_t sign = line.find('=');
    if (sign != std::string::npos) variables[line.substr(0, sign)] = line.substr(sign + 1);
  }
  return variables;
}

}  // namespace muster::engine::slurm
