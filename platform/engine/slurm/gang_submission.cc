#include "engine/slurm/gang_submission.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "engine/slurm/slurm_words.h"
#include "job/checker.h"
#include "job/project.h"
#include "job/validate.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;

namespace {

constexpr int64_t kMilli = 1000;
/// For Slurm's own doings before a task starts and after it has ended.
constexpr std::chrono::minutes kSpareTime{1};

std::string account_for(const RoomWish& wish, const SlurmEngineOptions& options) {
  if (!wish.slurm.account.empty()) return wish.slurm.account;
  return job::slurm_account_of(wish.project, options.accounts, options.default_account);
}

/// A job names pools and models more freely than Slurm does: a comma or a colon in one would ask
/// for another partition, or for more GPUs.
void find_strange_names(const RoomWish& wish, std::vector<Fault>& faults) {
  const auto look = [&](const std::vector<std::string>& names, const char* field,
                        const char* noun) {
    for (const std::string& name : names) {
      const bool is_plain = job::is_slurm_name(name) && name.find(':') == std::string::npos;
      if (is_plain) continue;
      faults.push_back({.field = field,
                        .what = base::in_quotes(name) + " cannot be the name of a " + noun +
                                " in Slurm; one has letters, digits and _-.+@"});
    }
  };
  if (wish.slurm.partition.empty()) look(wish.node_pools, "node pools", "partition");
  look(wish.gpu_models, "gpu models", "type of GPUs");
}

void find_faults(const TaskWish& task, std::vector<Fault>& faults) {
  const job::Resources& needs = task.resources;
  if (needs.gpu_share_milli == 0 && needs.gpu_memory_bytes == 0) return;
  faults.push_back(
      {.field = task.task,
       .what = "asks for a part of a GPU, and Slurm gives whole ones: ask for --gpus 1"});
}

/// Beside those that claim something; of tasks that all claim nothing, one that only launches.
bool is_guest(const RoomWish& wish, const TaskWish& task) {
  const job::Resources nothing;
  if (task.resources != nothing) return false;
  return std::any_of(wish.tasks.begin(), wish.tasks.end(), [&](const TaskWish& other) {
    return other.resources != nothing || (task.only_launches && !other.only_launches);
  });
}

Component component_of(const job::Resources& needs, int tasks_per_node, const std::string& model) {
  Component component{.tasks_per_node = std::max(tasks_per_node, 1), .gpu_type = {}};
  component.cpus_per_task = static_cast<int>((needs.cpu_milli + kMilli - 1) / kMilli);
  component.gpus_per_node = needs.gpus;
  component.memory_bytes_per_node = needs.memory_bytes;
  if (needs.gpus > 0) component.gpu_type = model;
  return component;
}

/// What a node is asked for is as much as its tasks need, of which there may be fewer than fit.
void settle(Component& component) {
  component.tasks_per_node = std::min(component.tasks_per_node, component.tasks);
  component.gpus_per_node *= component.tasks_per_node;
  component.memory_bytes_per_node *= component.tasks_per_node;
}

std::vector<Component> components_for(const RoomWish& wish, int tasks_per_node) {
  const std::string model = wish.gpu_models.empty() ? "" : wish.gpu_models.front();
  std::vector<Component> components;
  const std::vector<Seat> seats = seats_for(wish);
  for (size_t i = 0; i < seats.size(); ++i) {
    if (is_guest(wish, wish.tasks[i])) continue;
    if (static_cast<size_t>(seats[i].component) == components.size()) {
      components.push_back(component_of(wish.tasks[i].resources, tasks_per_node, model));
    }
    ++components.back().tasks;
    if (!wish.tasks[i].may_be_missing) ++components.back().least_tasks;
  }
  for (Component& component : components) {
    if (component.least_tasks == component.tasks) component.least_tasks = 0;
    settle(component);
  }
  return components;
}

}  // namespace

std::vector<Seat> seats_for(const RoomWish& wish) {
  std::vector<Seat> seats;
  const job::Resources* before = nullptr;
  int component = -1;
  int index = 0;
  for (const TaskWish& task : wish.tasks) {
    const bool guest = is_guest(wish, task);
    if (!guest && (before == nullptr || task.resources != *before)) {
      before = &task.resources;
      ++component;
      index = 0;
    }
    seats.push_back({.task = task.task,
                     .component = guest ? -1 : component,
                     .index = guest ? 0 : index++,
                     .gpus = task.resources.gpus,
                     .may_be_missing = task.may_be_missing,
                     .node = {},
                     .address = {}});
  }
  int guests = 0;
  for (Seat& seat : seats) {
    if (seat.component >= 0) continue;
    seat.component = component + 1;
    seat.index = guests++;
  }
  return seats;
}

int guests_of(const RoomWish& wish) {
  return static_cast<int>(
      std::count_if(wish.tasks.begin(), wish.tasks.end(),
                    [&](const TaskWish& task) { return is_guest(wish, task); }));
}

Result<Submission> submission_for(const RoomWish& wish, const SlurmEngineOptions& options) {
  std::vector<Fault> faults;
  find_strange_names(wish, faults);
  bool wants_gpus = false;
  for (const TaskWish& task : wish.tasks) {
    find_faults(task, faults);
    wants_gpus = wants_gpus || task.resources.gpus > 0;
  }
  if (wants_gpus && wish.gpu_models.size() > 1) {
    faults.push_back({.field = "gpu models",
                      .what = "Slurm is asked for one model of GPUs, not for any of " +
                              base::joined(wish.gpu_models, ",") +
                              ": name one, or the nodes' features by --slurm-constraint"});
  }
  if (!faults.empty()) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "Slurm cannot give what the job asks for",
                 .faults = std::move(faults)};
  }
  Submission submission{.name = wish.job,
                        .comment = {},
                        .script = {},
                        .components = components_for(wish, options.tasks_per_node)};
  submission.partition =
      wish.slurm.partition.empty() ? base::joined(wish.node_pools, ",") : wish.slurm.partition;
  submission.account = account_for(wish, options);
  submission.qos = wish.slurm.qos.empty() ? options.qos : wish.slurm.qos;
  submission.reservation = wish.slurm.reservation;
  submission.constraint = wish.slurm.constraint;
  submission.excluded_nodes = wish.avoided_nodes;
  submission.options = options.sbatch_options;
  if (wish.time_limit) {
    submission.time_limit =
        std::chrono::ceil<std::chrono::minutes>(*wish.time_limit + wish.grace) + kSpareTime;
  }
  return submission;
}

std::string shape_of(const Submission& submission) {
  nlohmann::json components = nlohmann::json::array();
  for (const Component& each : submission.components) {
    components.push_back({each.tasks, each.least_tasks, each.tasks_per_node, each.cpus_per_task,
                          each.memory_bytes_per_node, each.gpus_per_node, each.gpu_type});
  }
  return nlohmann::json{components,
                        submission.partition,
                        submission.account,
                        submission.qos,
                        submission.reservation,
                        submission.constraint,
                        submission.excluded_nodes,
                        submission.time_limit.value_or(std::chrono::minutes(0)).count()}
      .dump();
}

std::string comment_for(const std::string& owner, const Gang& gang) {
  return "muster:" + owner + ":" + gang.job_id + ":" + std::to_string(gang.attempt);
}

bool is_comment_of(const std::string& owner, const std::string& comment) {
  return comment.starts_with("muster:" + owner + ":");
}

}  // namespace muster::engine::slurm
