#include "launch/task_environment.h"

#include <algorithm>

#include "launch/command_words.h"
#include "launch/contract_environment.h"
#include "launch/elastic.h"
#include "launch/grpc_cluster.h"
#include "launch/mpi_environment.h"
#include "launch/mpi_plan.h"
#include "launch/program.h"
#include "launch/secrets.h"
#include "launch/served_ports.h"
#include "launch/torch_group.h"

namespace muster::launch {

using job::Role;
using job::Task;

namespace {

/// Where rank 0 gathers the others.
std::string rendezvous_address(const Gang& gang) {
  return gang.network.addresses[rendezvous_task(gang)] + ":" +
         std::to_string(gang.network.rendezvous_port);
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

/// By name, where a task can look it up.
const std::string& host_of(const Gang& gang, const Task& task, const std::string& address) {
  const bool knows_names =
      gang.site.reach == Reach::kLoopback && gang.job.spec.sandbox != job::Sandbox::kNone;
  return knows_names || address.empty() ? task.hostname : address;
}

const std::string& host_of(const Gang& gang, size_t index) {
  return host_of(gang, *gang.tasks[index], gang.network.addresses[index]);
}

/// The tasks of a role, in the order of their numbers.
struct Service {
  std::vector<const Task*> tasks;
  std::vector<std::string> hosts;  ///< where each serves
};

Service service_of(const Gang& gang, Role role) {
  Service service;
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    if (gang.tasks[i]->role != role) continue;
    service.tasks.push_back(gang.tasks[i]);
    service.hosts.push_back(host_of(gang, i) + ":" + std::to_string(gang.network.service_ports[i]));
  }
  return service;
}

/// Every seat, whoever is in it: who joins later has a number that no other has, and whoever was
/// there before had counted it.
Service seats_of_workers(const Gang& gang) {
  Service service;
  const std::vector<Task>& tasks = gang.job.tasks;
  for (int seat = 1; seat <= gang.job.spec.workers; ++seat) {
    auto task = tasks.begin() + seat;
    for (auto other = tasks.begin(); other != tasks.end(); ++other) {
      const bool sits_there = other->seat == seat && !other->left && !other->node.empty();
      if (sits_there) task = other;
    }
    const auto number = static_cast<size_t>(task - tasks.begin());
    service.tasks.push_back(&*task);
    service.hosts.push_back(host_of(gang, *task, gang.everyone.addresses[number]) + ":" +
                            std::to_string(gang.everyone.service_ports[number]));
  }
  return service;
}

int number_in(const Service& service, const Task& task) {
  const auto found = std::find(service.tasks.begin(), service.tasks.end(), &task);
  return static_cast<int>(found - service.tasks.begin());
}

GrpcPlace::Kind place_kind(Role role) {
  switch (role) {
    case Role::kChief:
      return GrpcPlace::Kind::kChief;
    case Role::kParameterServer:
      return GrpcPlace::Kind::kParameterServer;
    case Role::kEvaluator:
      return GrpcPlace::Kind::kEvaluator;
    case Role::kWorker:
    case Role::kLauncher:
    case Role::kSingle:
    case Role::kMaster:
      break;
  }
  return GrpcPlace::Kind::kWorker;
}

Variables cluster_environment(const Gang& gang, size_t index) {
  const Task& task = *gang.tasks[index];
  const bool is_live = resizes_live(gang.job.spec);
  const Service workers = is_live ? seats_of_workers(gang) : service_of(gang, Role::kWorker);
  const Service own = task.role == Role::kWorker ? workers : service_of(gang, task.role);
  return grpc_environment({.chief = service_of(gang, Role::kChief).hosts.front(),
                           .workers = workers.hosts,
                           .parameter_servers = service_of(gang, Role::kParameterServer).hosts},
                          {.kind = place_kind(task.role), .index = number_in(own, task)});
}

TorchPlace torch_place(const Gang& gang, size_t index) {
  const job::JobSpec& spec = gang.job.spec;
  const int tasks = static_cast<int>(gang.tasks.size());
  const bool is_live = resizes_live(spec);
  return {.master_host = host_of(gang, 0),
          .master_port = gang.network.service_ports[0],
          .host = host_of(gang, index),
          // Numbered as long as it is there: whoever takes the place of one that was lost has its
          // number.
          .rank = is_live ? gang.tasks[index]->seat : static_cast<int>(index),
          .tasks = tasks,
          .min_tasks = is_live ? 1 + *spec.scheduling.min_workers : tasks,
          .max_tasks = is_live ? 1 + spec.workers : tasks,
          .processes_per_task = spec.slots_per_worker,
          .group = gang.job.id + "-" + std::to_string(gang.job.attempt),
          .interface = gang.site.reach == Reach::kLoopback ? kLoopback : ""};
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
      return torch_environment(torch_place(gang, index));
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

/// horovodrun calls "ssh" and knows no variable that would say how: it is to find the one that
/// knows the job's tasks by name (shell_files.h).
bool calls_plain_ssh(const Gang& gang, const Task& task) {
  if (task.role != Role::kLauncher || gang.is_by_agent() || gang.is_by_srun()) return false;
  const std::vector<std::string> command = argv_of(gang, task);
  const std::vector<std::string_view> words = words_of(command);
  return std::any_of(words.begin(), words.end(),
                     [](std::string_view word) { return is_file_named(word, "horovodrun"); });
}

/// `folder` is looked in where no other folder has a program, such as horovodrun.
std::string with_folder_last(const std::string& path, const std::string& folder) {
  const bool is_there = (":" + path + ":").find(":" + folder + ":") != std::string::npos;
  return folder.empty() || is_there ? path : path + ":" + folder;
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
  if (calls_plain_ssh(gang, task)) variables["PATH"] = folder + "/bin:" + variables["PATH"];
  if (image == nullptr) variables["PATH"] = with_folder_last(variables["PATH"], gang.site.programs);
  // Last: the CUDA_VISIBLE_DEVICES of the shell that submitted would lead to GPUs that others hold.
  put(devices_of(gang, task));
  return variables;
}

}  // namespace muster::launch
