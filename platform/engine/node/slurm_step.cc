#include "engine/node/slurm_step.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "engine/shim/exec.h"
#include "launch/srun_command.h"

namespace muster::engine::node {

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

/// "0,2" or "0-3": Slurm writes both forms.
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

void read_gpus(const Variables& variables, NodeFacts& facts) {
  const std::string visible = variable_text(variables, "CUDA_VISIBLE_DEVICES");
  facts.gpus = base::split(visible, ',');
  // With constrained devices (cgroups) CUDA_VISIBLE_DEVICES counts from 0; Slurm's variables have
  // the numbers on the node.
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

/// Ranks are numbered through the components of a step, in order.
bool find_component(const Variables& variables, int rank, NodeFacts& facts) {
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

Result<NodeFacts> read_step_facts(int component, const Variables& variables) {
  const auto rank = number_in<int>(variables, "SLURM_PROCID");
  auto job = number_in<uint64_t>(variables, "SLURM_HET_JOB_ID");
  if (!job) job = number_in<uint64_t>(variables, "SLURM_JOB_ID");
  NodeFacts facts{.component = component, .index = rank.value_or(0), .node = {}};
  const bool is_found = rank && job && (component >= 0 || find_component(variables, *rank, facts));
  if (!is_found) {
    return Error{
        .code = ErrorCode::kInvalid,
        .what = "muster-node was not started by srun",
        .advice = "Muster's server starts muster-node in the jobs that it submits to Slurm"};
  }
  facts.allocation = *job;
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

namespace {

constexpr size_t kLongestNumber = 12;

Error no_list(std::string_view list) {
  constexpr size_t kShown = 200;
  return Error{
      .code = ErrorCode::kInvalid,
      .what = "'" + std::string(list.substr(0, kShown)) + "' is not a valid list of nodes"};
}

/// "n[1-2],m[3,4]" has two names: commas in brackets do not separate names.
std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  size_t first = 0;
  bool is_inside = false;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !is_inside)) {
      names.push_back(list.substr(first, i - first));
      first = i + 1;
    } else if (list[i] == '[') {
      is_inside = true;
    } else if (list[i] == ']') {
      is_inside = false;
    }
  }
  return names;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kLongestNumber &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "007-010": 007, 008, 009, 010. False: not a range, or too long.
bool add_range(std::string_view range, std::vector<std::string>& numbers) {
  const size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  if (!is_number(first) || !is_number(last)) return false;
  const uint64_t from = *base::number_of<uint64_t>(first);
  const uint64_t to = *base::number_of<uint64_t>(last);
  if (to < from || to - from >= kMostNodes) return false;
  for (uint64_t number = from; number <= to; ++number) {
    std::string text = std::to_string(number);
    if (text.size() < first.size()) text.insert(0, first.size() - text.size(), '0');
    numbers.push_back(std::move(text));
  }
  return numbers.size() <= kMostNodes;
}

bool multiply(std::vector<std::string>& names, const std::vector<std::string>& ends) {
  if (ends.empty() || names.size() > kMostNodes / ends.size()) return false;
  std::vector<std::string> longer;
  longer.reserve(names.size() * ends.size());
  for (const std::string& name : names) {
    for (const std::string& end : ends) longer.push_back(name + end);
  }
  names = std::move(longer);
  return true;
}

/// False: not a name.
bool expand(std::string_view name, std::vector<std::string>& names) {
  names = {""};
  while (!name.empty()) {
    const size_t open = name.find('[');
    const std::string_view plain = name.substr(0, open);
    if (plain.find(']') != std::string_view::npos) return false;
    for (std::string& each : names) each += plain;
    if (open == std::string_view::npos) break;
    const size_t close = name.find(']', open);
    if (close == std::string_view::npos) return false;
    std::vector<std::string> numbers;
    for (const std::string& range : base::split(name.substr(open + 1, close - open - 1), ',')) {
      if (!add_range(range, numbers)) return false;
    }
    if (!multiply(names, numbers)) return false;
    name.remove_prefix(close + 1);
  }
  return !names.front().empty();
}

bool is_none(std::string_view list) {
  return list.empty() || list == "(null)" || list == "None" || list == "None assigned";
}

}  // namespace

Result<std::vector<std::string>> expand_nodes(std::string_view list) {
  std::vector<std::string> nodes;
  if (is_none(list)) return nodes;
  for (const std::string_view name : names_in(list)) {
    std::vector<std::string> names;
    if (!expand(name, names) || nodes.size() + names.size() > kMostNodes) return no_list(list);
    std::move(names.begin(), names.end(), std::back_inserter(nodes));
  }
  return nodes;
}

namespace {

Error no_rank(std::string what) {
  return Error{.code = ErrorCode::kInvalid,
               .what = std::move(what),
               .advice = "srun starts muster-node --join, in jobs with --launch srun"};
}

std::optional<int> step_number(const Variables& step, const char* name) {
  const auto found = step.find(name);
  return found == step.end() ? std::nullopt : base::number_of<int>(found->second);
}

/// Variables that Slurm and its PMI plugins set for each rank.
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
  if (!rank || !size || *rank < 0) return no_rank("this process is not a rank that srun started");
  std::optional<JoiningRank> found;
  int before = 0;
  for (const std::string& part : base::split(tasks, ',')) {
    const size_t sign = part.find('=');
    const auto slots =
        sign == std::string::npos ? std::nullopt : base::number_of<int>(part.substr(sign + 1));
    // A task's name is also the name of its folder, and must not lead out of the gang's folder.
    const std::string name = part.substr(0, sign);
    if (!slots || *slots < 1 || *slots > *size || name.empty() || name.front() == '.' ||
        name.find('/') != std::string::npos) {
      return no_rank("'" + part + "' is not TASK=RANKS");
    }
    if (!found && *rank < before + *slots) {
      found = JoiningRank{
          .task = name, .rank = *rank, .local_rank = *rank - before, .world_size = *size};
    }
    before += *slots;
    if (before > *size) break;
  }
  if (!found || before != *size) {
    return no_rank("srun started " + std::to_string(*size) + " ranks, but the tasks '" +
                   std::string(tasks) + "' have a different number");
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

namespace {

/// Variables that describe the job, not muster-node's step.
bool is_of_the_job(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kNames{
      "SLURM_CONF", "SLURM_CLUSTER_NAME", "SLURM_HET_SIZE", "SLURM_JOBID", "SLURM_RESTART_COUNT"};
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  // srun would apply the batch job's name to its own step.
  if (name == "SLURM_JOB_NAME") return false;
  return name.starts_with("SLURM_JOB_") || name.starts_with("SLURM_SACK_");
}

std::set<std::string> nodes_in(const launch::TaskPlan& plan) {
  std::set<std::string> nodes;
  for (const launch::PlannedFile& file : plan.files) {
    if (file.path != launch::kSrunNodesFile) continue;
    for (size_t at = 0; at < file.content.size();) {
      const size_t end = std::min(file.content.find('\n', at), file.content.size());
      nodes.insert(file.content.substr(at, end - at));
      at = end + 1;
    }
  }
  return nodes;
}

/// The component of a heterogeneous job that has all of these nodes; -1: none.
int component_with(const std::set<std::string>& nodes, const Variables& variables) {
  const auto size = variables.find("SLURM_HET_SIZE");
  const int components =
      size == variables.end() ? 0 : base::number_of<int>(size->second).value_or(0);
  for (int i = 0; i < components; ++i) {
    const auto list = variables.find("SLURM_JOB_NODELIST_HET_GROUP_" + std::to_string(i));
    const auto names = list == variables.end() ? base::Result<std::vector<std::string>>({})
                                               : expand_nodes(list->second);
    if (!names) continue;
    const bool has_all = std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
      return std::find(names->begin(), names->end(), node) != names->end();
    });
    if (has_all && !nodes.empty()) return i;
  }
  return -1;
}

}  // namespace

launch::TaskPlan plan_srun_launcher(launch::TaskPlan plan, const Variables& variables,
                                    const std::string& attempt_folder) {
  const std::set<std::string> nodes = nodes_in(plan);
  // The plan runs srun because Muster generated it, or the user's own command is srun.
  const bool runs_srun = !nodes.empty() || launch::is_own_srun(plan.argv);
  if (plan.role != job::TaskRole::kLauncher || !runs_srun) return plan;
  for (const auto& [name, value] : variables) {
    if (is_of_the_job(name)) plan.environment[name] = value;
  }
  plan.environment[launch::kAttemptFolder] = attempt_folder;
  const int component = component_with(nodes, variables);
  if (component >= 0) {
    const auto srun = std::find_if(plan.argv.begin(), plan.argv.end(), [](const std::string& word) {
      return launch::is_own_srun({word});
    });
    if (srun == plan.argv.end()) return plan;
    plan.argv.insert(srun + 1, "--het-group=" + std::to_string(component));
  }
  return plan;
}

}  // namespace muster::engine::node
