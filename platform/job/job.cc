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

constexpr Names<Role, 6> kRoles{{{Role::kLauncher, "launcher"},
                                 {Role::kWorker, "worker"},
                                 {Role::kSingle, "single"},
                                 {Role::kChief, "chief"},
                                 {Role::kParameterServer, "ps"},
                                 {Role::kMaster, "master"}}};

constexpr Names<TaskPhase, 4> kTaskPhases{{{TaskPhase::kPending, "Pending"},
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
  std::vector<Task> tasks{leader_of(spec)};
  if (spec.kind == Kind::kSingle) return tasks;
  for (int i = 0; i < spec.workers; ++i) {
    tasks.push_back(make_task(spec, "worker-" + std::to_string(i), Role::kWorker));
  }
  if (spec.kind != Kind::kGrpc) return tasks;
  for (int i = 0; i < spec.parameter_servers; ++i) {
    tasks.push_back(make_task(spec, "ps-" + std::to_string(i), Role::kParameterServer));
  }
  return tasks;
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
  }
  return spec.resources;
}

const Task& deciding_task(const Job& job) {
  return job.tasks.front();
}

}  // namespace muster::job
