#include "launch/task_environment.h"

#include <algorithm>

#include "launch/contract_environment.h"
#include "launch/grpc_cluster.h"
#include "launch/mpi_plan.h"
#include "launch/program.h"
#include "launch/secrets.h"
#include "launch/torch_group.h"

namespace muster::launch {

using job::Role;
using job::Task;

namespace {

/// Where rank 0 gathers the others. mpirun puts it on the first worker of the hostfile.
std::string rendezvous_address(const Gang& gang) {
  const std::string& first =
      gang.shell_hosts.empty() ? gang.network.addresses.front() : gang.shell_hosts.front().address;
  return first + ":" + std::to_string(gang.network.rendezvous_port);
}

/// What Muster itself tells every task.
Variables own_environment(const Gang& gang, const Task& task, const std::string& folder) {
  return {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"TMPDIR", folder + "/tmp"},
      {"MUSTER_JOB", gang.job.spec.name},
      {"MUSTER_JOB_ID", gang.job.id},
      {"MUSTER_PROJECT", gang.job.spec.project},
      {"MUSTER_TASK", task.name},
      {"MUSTER_ATTEMPT", std::to_string(gang.job.attempt)},
      {"MUSTER_RESTART_COUNT", std::to_string(gang.job.restarts)},
      {"MUSTER_GENERATED", folder},
      {"MUSTER_METRICS", folder + "/" + kReportSocket},
      {"MUSTER_RENDEZVOUS", rendezvous_address(gang)},
      {"MUSTER_RENDEZVOUS_KEY", gang.rendezvous_key},
  };
}

/// By name, where the task can look it up.
const std::string& host_of(const Gang& gang, size_t index) {
  const bool knows_names =
      gang.site.reach == Reach::kLoopback && gang.job.spec.sandbox != job::Sandbox::kNone;
  return knows_names ? gang.tasks[index]->hostname : gang.network.addresses[index];
}

/// Of those with the role, in the order of their numbers: where they serve.
std::vector<std::string> service_hosts(const Gang& gang, Role role) {
  std::vector<std::string> hosts;
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    if (gang.tasks[i]->role != role) continue;
    hosts.push_back(host_of(gang, i) + ":" + std::to_string(gang.network.service_ports[i]));
  }
  return hosts;
}

Variables cluster_environment(const Gang& gang, size_t index) {
  const Role role = gang.tasks[index]->role;
  const auto before =
      std::count_if(gang.tasks.begin(), gang.tasks.begin() + static_cast<std::ptrdiff_t>(index),
                    [&](const Task* task) { return task->role == role; });
  const auto kind = role == Role::kChief    ? GrpcPlace::Kind::kChief
                    : role == Role::kWorker ? GrpcPlace::Kind::kWorker
                                            : GrpcPlace::Kind::kParameterServer;
  return grpc_environment({.chief = service_hosts(gang, Role::kChief).front(),
                           .workers = service_hosts(gang, Role::kWorker),
                           .parameter_servers = service_hosts(gang, Role::kParameterServer)},
                          {.kind = kind, .index = static_cast<int>(before)});
}

Variables kind_environment(const Gang& gang, size_t index, const std::string& folder) {
  switch (gang.job.spec.kind) {
    case job::Kind::kSingle:
      break;
    case job::Kind::kMpi:
      return mpi_variables(gang, folder);
    case job::Kind::kGrpc:
      return cluster_environment(gang, index);
    case job::Kind::kTorch:
      return torch_environment({.master_host = host_of(gang, 0),
                                .master_port = gang.network.service_ports[0],
                                .rank = static_cast<int>(index),
                                .world_size = static_cast<int>(gang.tasks.size())});
  }
  return {};
}

/// Where an image is run: what it says, and what a login there would say.
Variables image_environment(const ImageFacts& image) {
  Variables variables = image.environment;
  variables.emplace("HOME", image.account.home);
  // An MPI asks it for the shell of an account that has none to log in with.
  variables.emplace("SHELL", "/bin/sh");
  if (!image.account.name.empty()) {
    variables.emplace("USER", image.account.name);
    variables.emplace("LOGNAME", image.account.name);
  }
  return variables;
}

}  // namespace

Variables environment_of(const Gang& gang, size_t index) {
  const Task& task = *gang.tasks[index];
  const job::JobSpec& spec = gang.job.spec;
  const std::string folder = gang.site.generated_folder(task.name);
  Variables variables;
  const auto put = [&](const Variables& more) {
    for (const auto& [name, value] : more) variables[name] = value;
  };
  const ImageFacts* const image = image_of(gang, task);
  if (image != nullptr) put(image_environment(*image));
  put(own_environment(gang, task, folder));
  // Its programs lie where it says.
  if (image != nullptr && image->environment.contains("PATH")) {
    variables["PATH"] = image->environment.at("PATH");
  }
  // What today's terminals understand; whoever is attached later may have another.
  if (index == 0 && spec.terminal) variables["TERM"] = "xterm-256color";
  put(contract_environment(gang.job, task));
  put(kind_environment(gang, index, folder));
  put(image != nullptr ? set_variables_in_image(spec, task.role)
                       : set_variables(spec, task.role, gang.site.images));
  add_secret_variables(spec.secrets, gang.site.secrets, variables);
  // Last: the CUDA_VISIBLE_DEVICES of the shell that submitted would lead to GPUs that others hold.
  put(devices_of(gang, task));
  return variables;
}

}  // namespace muster::launch
