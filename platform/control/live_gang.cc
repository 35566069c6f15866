#include "control/live_gang.h"

#include <algorithm>
#include <vector>

namespace muster::control {

using job::Job;
using job::Role;
using job::Task;
using job::TaskPhase;

bool holds_room(const Task& task) {
  return !task.node.empty() && (!task.left || task.phase != TaskPhase::kEnded);
}

void put(Task& task, const schedule::TaskPlace& place) {
  task.node = place.node;
  task.devices = place.devices;
  task.gpu_share_milli = place.share_milli;
}

void unseat(Task& task) {
  put(task, {});
  task.phase = TaskPhase::kPending;
}

Task* sitter_of(Job& job, int seat) {
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return task.seat == seat && !task.node.empty() && !task.left;
  });
  return found == job.tasks.end() ? nullptr : &*found;
}

std::set<std::string> members_of(const Job& job) {
  std::set<std::string> names;
  for (const Task& task : job.tasks) {
    const bool runs = task.role == Role::kWorker && task.phase == TaskPhase::kRunning;
    if (runs && !task.left) names.insert(task.name);
  }
  return names;
}

int count_members(const Job& job) {
  return static_cast<int>(members_of(job).size());
}

job::Workers workers_of(const Job& job, int count) {
  return {.count = count, .wanted = job.spec.workers};
}

bool is_loss(const Job& job, const Task& task) {
  if (task.name == job::deciding_task(job).name || !task.exit || task.exit->stopped) return false;
  const bool is_reached = job.spec.kind == job::Kind::kMpi;
  const bool runs_the_program =
      (task.role == Role::kWorker && !is_reached) || task.role == Role::kEvaluator;
  return !(runs_the_program && task.exit->succeeded());
}

int lost_soon_in_a_row(const Job& job, const std::set<std::string>& lost_soon, base::Time now) {
  const auto has_lived = [&](const Task& task) {
    return task.phase == TaskPhase::kEnded ? is_loss(job, task) && !lost_soon.contains(task.name)
                                           : now - *task.started >= kSoon;
  };
  std::vector<const Task*> workers;
  for (const Task& task : job.tasks) {
    if (task.role == Role::kWorker && task.started) workers.push_back(&task);
  }
  // Of those that were started together, who lives speaks for the program.
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

void close_up_seats(Job& job) {
  int next = 0;
  for (const bool with_room : {true, false}) {
    for (Task& task : job.tasks) {
      if (holds_room(task) == with_room) task.seat = next++;
    }
  }
}

}  // namespace muster::control
