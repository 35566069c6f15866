#include "engine/slurm/node/join_plan.h"

#include <array>
#include <optional>

#include "base/text.h"
#include "base/units.h"
#include "engine/shim/environment.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

Error no_rank(std::string what) {
  return Error{.code = ErrorCode::kInvalid,
               .what = std::move(what),
               .advice = "muster-node --join is started by srun, in jobs with --launch srun"};
}

std::optional<int> step_number(const Variables& step, const char* name) {
  const auto found = step.find(name);
  return found == step.end() ? std::nullopt : base::number_of<int>(found->second);
}

/// What Slurm and its PMI plugins say to each rank.
bool is_of_the_step(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kPrefixes{"SLURM_", "PMIX_", "PMI_", "PMI2_"};
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

Result<JoiningRank> joining_rank(std::string_view tasks, const Variables& step) {
  const auto rank = step_number(step, "SLURM_PROCID");
  auto size = step_number(step, "SLURM_STEP_NUM_TASKS");
  if (!size) size = step_number(step, "SLURM_NTASKS");
  if (!rank || !size || *rank < 0) return no_rank("this is no rank that srun has started");
  std::optional<JoiningRank> found;
  int before = 0;
  for (const std::string& part : base::split(tasks, ',')) {
    const size_t sign = part.find('=');
    const auto slots =
        sign == std::string::npos ? std::nullopt : base::number_of<int>(part.substr(sign + 1));
    // A task is a folder, too: no word leads out of that of the gang.
    const std::string name = part.substr(0, sign);
    if (!slots || *slots < 1 || *slots > *size || name.empty() || name.front() == '.' ||
        name.find('/') != std::string::npos) {
      return no_rank("'" + part + "' is no task with its number of ranks");
    }
    if (!found && *rank < before + *slots) {
      found = JoiningRank{
          .task = name, .rank = *rank, .local_rank = *rank - before, .world_size = *size};
    }
    before += *slots;
    if (before > *size) break;
  }
  if (!found || before != *size) {
    return no_rank("srun has started " + std::to_string(*size) + " ranks, and the tasks '" +
                   std::string(tasks) + "' take another number");
  }
  return *found;
}

std::vector<std::string> environment_of_rank(const std::vector<std::string>& task,
                                             const Variables& step, const JoiningRank& rank) {
  Variables more;
  for (const auto& [name, value] : step) {
    if (is_of_the_step(name)) more[name] = value;
  }
  more["MUSTER_RANK"] = std::to_string(rank.rank);
  more["MUSTER_LOCAL_RANK"] = std::to_string(rank.local_rank);
  more["MUSTER_WORLD_SIZE"] = std::to_string(rank.world_size);
  return merged(task, more);
}

}  // namespace muster::engine::slurm
