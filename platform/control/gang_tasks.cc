#include "control/gang_tasks.h"

#include <algorithm>
#include <vector>

namespace muster::control {

using job::Job;
using job::Task;
using job::TaskPhase;
using job::TaskRole;

void assign_place(Task& task, const schedule::TaskPlace& place) {
  task.node = place.node;
  task.devices = place.devices;
  task.gpu_share_milli = place.share_milli;
}

void clear_place(Task& task) {
  assign_place(task, {});
  task.phase = TaskPhase::kPending;
}

schedule::TaskPlace place_of(const Task& task) {
  return {.node = task.node, .devices = task.devices, .share_milli = task.gpu_share_milli};
}

Task* find_task(Job& job, const std::string& name) {
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(),
                                  [&](const Task& task) { return task.name == name; });
  return found == job.tasks.end() ? nullptr : &*found;
}

Task* task_in_seat(Job& job, int seat) {
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return task.seat == seat && !task.node.empty() && !task.left;
  });
  return found == job.tasks.end() ? nullptr : &*found;
}

std::vector<std::string> names_of_tasks(const Job& job) {
  std::vector<std::string> names;
  for (const Task& task : job.tasks) names.push_back(task.name);
  return names;
}

std::vector<std::string> live_tasks(const Job& job) {
  std::vector<std::string> names;
  for (const Task& task : job.tasks) {
    if (task.phase == TaskPhase::kStarting || task.phase == TaskPhase::kRunning) {
      names.push_back(task.name);
    }
  }
  return names;
}

std::vector<std::string> nodes_of(const Job& job) {
  std::set<std::string> nodes;
  for (const Task& task : job.tasks) {
    if (!task.node.empty()) nodes.insert(task.node);
  }
  return {nodes.begin(), nodes.end()};
}

bool leads(const Job& job, const Task& task) {
  return task.name == job::deciding_task(job).name;
}

bool is_reached_by_leader(const Job& job) {
  return job.spec.kind == job::Kind::kMpi;
}

std::set<std::string> members_of(const Job& job) {
  std::set<std::string> names;
  for (const Task& task : job.tasks) {
    const bool runs = task.role == TaskRole::kWorker && task.phase == TaskPhase::kRunning;
    if (runs && !task.left) names.insert(task.name);
  }
  return names;
}

int count_members(const Job& job) {
  return static_cast<int>(members_of(job).size());
}

int count_placed_workers(const Job& job) {
  return static_cast<int>(std::count_if(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    return task.role == TaskRole::kWorker && holds_place(task);
  }));
}

int least_workers(const job::JobSpec& spec) {
  return spec.scheduling.min_workers.value_or(spec.workers);
}

job::Workers workers_of(const Job& job, int count) {
  return {.count = count, .requested = job.spec.workers};
}

bool is_loss(const Job& job, const Task& task) {
  if (task.name == job::deciding_task(job).name || !task.exit || task.exit->stopped) return false;
  const bool runs_the_program = (task.role == TaskRole::kWorker && !is_reached_by_leader(job)) ||
                                task.role == TaskRole::kEvaluator;
  return !(runs_the_program && task.exit->succeeded());
}

namespace {

template <typename Holds>
bool holds_for_deciding_tasks(const Job& job, Holds holds) {
  return std::all_of(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    const bool decides = leads(job, task) || (job.spec.success == job::Success::kAll &&
                                              task.role == TaskRole::kWorker && !task.left);
    return !decides || (task.exit && holds(*task.exit));
  });
}

}  // namespace

bool has_succeeded(const Job& job) {
  return holds_for_deciding_tasks(job,
                                  [](const job::ExitStatus& exit) { return exit.succeeded(); });
}

bool has_ended_by_itself(const Job& job) {
  return holds_for_deciding_tasks(
      job, [](const job::ExitStatus& exit) { return !exit.stopped && !exit.lost; });
}

int lost_soon_in_a_row(const Job& job, const std::set<std::string>& lost_soon, base::Time now) {
  const auto has_lived = [&](const Task& task) {
    return task.phase == TaskPhase::kEnded ? is_loss(job, task) && !lost_soon.contains(task.name)
                                           : now - *task.started >= kSoon;
  };
  std::vector<const Task*> workers;
  for (const Task& task : job.tasks) {
    if (task.role == TaskRole::kWorker && task.started) workers.push_back(&task);
  }
  // Of workers that were started together, the survivors count last: they show that the program
  // works.
  std::stable_sort(workers.begin(), workers.end(), [&](const Task* left, const Task* right) {
    return std::pair(*left->started, has_lived(*left)) <
           std::pair(*right->started, has_lived(*right));
  });
  int row = 0;
  for (auto worker = workers.rbegin(); worker != workers.rend(); ++worker) {
    if (has_lived(**worker)) break;
    if (lost_soon.contains((*worker)->name)) ++row;
  }
  return row;
}

void renumber_seats(Job& job) {
  int next = 0;
  for (const bool with_place : {true, false}) {
    for (Task& task : job.tasks) {
      if (holds_place(task) == with_place) task.seat = next++;
    }
  }
}

job::Fact suspended_reason(const Job& job) {
  return job::Suspended{.job = job.spec.name, .held = job.spec.held && job.attempt == 0};
}

job::Fact starting_reason(const Job& job) {
  using What = job::Notice::What;
  return job::Notice{job.tasks.size() > 1 ? What::kStartsWorkers : What::kStarts};
}

job::Failure failure_of(const Job& job, CensusFault fault) {
  return {.task = job::deciding_task(job).name,
          .cause = fault.cause,
          .advice = std::move(fault.advice),
          .last_lines = std::move(fault.evidence)};
}

}  // namespace muster::control
