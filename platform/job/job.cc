#include "job/job.h"

#include "job/enum_names.h"

namespace muster::job {

namespace {

constexpr Names<Phase, 6> kPhases{{{Phase::kQueued, "Queued"},
                                   {Phase::kStarting, "Starting"},
                                   {Phase::kRunning, "Running"},
                                   {Phase::kSucceeded, "Succeeded"},
                                   {Phase::kFailed, "Failed"},
                                   {Phase::kStopped, "Stopped"}}};

constexpr Names<Role, 3> kRoles{
    {{Role::kLauncher, "launcher"}, {Role::kWorker, "worker"}, {Role::kSingle, "single"}}};

constexpr Names<TaskPhase, 4> kTaskPhases{{{TaskPhase::kPending, "Pending"},
                                           {TaskPhase::kStarting, "Starting"},
                                           {TaskPhase::kRunning, "Running"},
                                           {TaskPhase::kEnded, "Ended"}}};

Task make_task(const JobSpec& spec, const std::string& name, Role role) {
  return {.name = name, .role = role, .hostname = spec.name + "-" + name};
}

}  // namespace

std::string_view to_string(Phase phase) {
  return name_in(kPhases, phase);
}
std::optional<Phase> phase_of(std::string_view name) {
  return value_in(kPhases, name);
}

std::string_view to_string(Role role) {
  return name_in(kRoles, role);
}
std::optional<Role> role_of(std::string_view name) {
  return value_in(kRoles, name);
}

std::string_view to_string(TaskPhase phase) {
  return name_in(kTaskPhases, phase);
}
std::optional<TaskPhase> task_phase_of(std::string_view name) {
  return value_in(kTaskPhases, name);
}

bool is_final(Phase phase) {
  return phase == Phase::kSucceeded || phase == Phase::kFailed || phase == Phase::kStopped;
}

std::vector<Task> tasks_of(const JobSpec& spec) {
  if (spec.kind == Kind::kSingle) return {make_task(spec, "main", Role::kSingle)};
  std::vector<Task> tasks{make_task(spec, "launcher", Role::kLauncher)};
  for (int i = 0; i < spec.workers; ++i) {
    tasks.push_back(make_task(spec, "worker-" + std::to_string(i), Role::kWorker));
  }
  return tasks;
}

const Task& deciding_task(const Job& job) {
  return job.tasks.front();
}

}  // namespace muster::job
