#include "job/job.h"

#include <algorithm>
#include <array>

#include "job/job_table.h"

namespace muster::job {

namespace {

constexpr std::array<record::Named<Phase>, 6> kPhases{{{Phase::kQueued, "Queued"},
                                                       {Phase::kStarting, "Starting"},
                                                       {Phase::kRunning, "Running"},
                                                       {Phase::kSucceeded, "Succeeded"},
                                                       {Phase::kFailed, "Failed"},
                                                       {Phase::kStopped, "Stopped"}}};

constexpr std::array<record::Named<Role>, 7> kRoles{{{Role::kLauncher, "launcher"},
                                                     {Role::kWorker, "worker"},
                                                     {Role::kSingle, "single"},
                                                     {Role::kChief, "chief"},
                                                     {Role::kParameterServer, "ps"},
                                                     {Role::kMaster, "master"},
                                                     {Role::kEvaluator, "evaluator"}}};

constexpr std::array<record::Named<TaskPhase>, 4> kTaskPhases{{{TaskPhase::kPending, "Pending"},
                                                               {TaskPhase::kStarting, "Starting"},
                                                               {TaskPhase::kRunning, "Running"},
                                                               {TaskPhase::kEnded, "Ended"}}};

Task make_task(const JobSpec& spec, const std::string& name, Role role) {
  return {.name = name, .role = role, .hostname = spec.name + "-" + name};
}

Task leader_of(const JobSpec& spec) {
  switch (spec.kind) {
    case Kind::kMpi:
      return make_task(spec, "launcher", Role::kLauncher);
    case Kind::kGrpc:
      return make_task(spec, "chief", Role::kChief);
    case Kind::kTorch:
      return make_task(spec, "master", Role::kMaster);
    case Kind::kSingle:
      break;
  }
  return make_task(spec, "main", Role::kSingle);
}

}  // namespace

record::Words<Phase> words_of(const Phase*) {
  return {.schema = "Phase", .values = kPhases};
}
record::Words<Role> words_of(const Role*) {
  return {.schema = "TaskRole", .values = kRoles};
}
record::Words<TaskPhase> words_of(const TaskPhase*) {
  return {.schema = "TaskPhase", .values = kTaskPhases};
}

std::string_view to_string(Phase phase) {
  return record::word_for(phase);
}
std::optional<Phase> phase_of(std::string_view name) {
  return record::meant_by<Phase>(name);
}

std::string_view to_string(Role role) {
  return record::word_for(role);
}
std::optional<Role> role_of(std::string_view name) {
  return record::meant_by<Role>(name);
}

std::string_view to_string(TaskPhase phase) {
  return record::word_for(phase);
}
std::optional<TaskPhase> task_phase_of(std::string_view name) {
  return record::meant_by<TaskPhase>(name);
}

bool is_final(Phase phase) {
  return phase == Phase::kSucceeded || phase == Phase::kFailed || phase == Phase::kStopped;
}

std::vector<Task> tasks_of(const JobSpec& spec) {
  std::vector<Task> tasks{leader_of(spec)};
  const auto add = [&](const char* name, Role role, int count) {
    for (int i = 0; i < count; ++i) {
      tasks.push_back(make_task(spec, name + std::string("-") + std::to_string(i), role));
      tasks.back().seat = static_cast<int>(tasks.size()) - 1;
    }
  };
  if (spec.kind == Kind::kSingle) return tasks;
  add("worker", Role::kWorker, spec.workers);
  if (spec.kind != Kind::kGrpc) return tasks;
  add("ps", Role::kParameterServer, spec.parameter_servers);
  add("evaluator", Role::kEvaluator, spec.evaluators);
  return tasks;
}

Task next_worker(const Job& job, int seat) {
  const auto workers = std::count_if(job.tasks.begin(), job.tasks.end(),
                                     [](const Task& task) { return task.role == Role::kWorker; });
  Task task = make_task(job.spec, "worker-" + std::to_string(workers), Role::kWorker);
  task.seat = seat;
  return task;
}

const Resources& resources_of(const JobSpec& spec, Role role) {
  switch (role) {
    case Role::kSingle:
    case Role::kWorker:
      break;
    case Role::kLauncher:
    case Role::kChief:
    case Role::kMaster:
      return spec.leader.resources;
    case Role::kParameterServer:
      return spec.parameter_server.resources;
    case Role::kEvaluator:
      return spec.evaluator.resources;
  }
  return spec.resources;
}

const Task& deciding_task(const Job& job) {
  return job.tasks.front();
}

}  // namespace muster::job
