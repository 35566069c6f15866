#include "launch/task_environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"
#include "job/job.h"
#include "launch/devices.h"
#include "launch/elastic.h"
#include "launch/mpi_environment.h"
#include "launch/mpi_plan.h"
#include "launch/mpirun_command.h"
#include "launch/plan_task.h"
#include "launch/rendezvous.h"
#include "launch/secrets.h"

namespace muster::launch {

using job::Task;
using job::TaskRole;

namespace {

/// The address at which rank 0 gathers the others.
std::string rendezvous_address(const GangContext& gang) {
  return gang.network.addresses[rendezvous_task(gang)] + ":" +
         std::to_string(gang.network.rendezvous_port);
}

/// The variables that Muster sets for every task.
Variables own_environment(const GangContext& gang, const Task& task, const std::string& folder) {
  // Not from a list in braces, whose texts would be copied.
  Variables variables;
  variables.emplace("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  variables.emplace("TMPDIR", folder + "/tmp");
  variables.emplace("MUSTER_JOB", gang.job.spec.name);
  variables.emplace("MUSTER_JOB_ID", gang.job.id);
  variables.emplace("MUSTER_PROJECT", gang.job.spec.project);
  variables.emplace("MUSTER_TASK", task.name);
  variables.emplace("MUSTER_ATTEMPT", std::to_string(gang.job.attempt));
  variables.emplace("MUSTER_RESTART_COUNT", std::to_string(gang.job.restarts));
  variables.emplace("MUSTER_GENERATED", folder);
  variables.emplace("MUSTER_METRICS", folder + "/" + kReportSocket);
  variables.emplace("MUSTER_RENDEZVOUS", rendezvous_address(gang));
  variables.emplace("MUSTER_RENDEZVOUS_KEY", gang.rendezvous_key);
  return variables;
}

/// By name, if tasks can resolve it.
const std::string& host_of(const GangContext& gang, const Task& task, const std::string& address) {
  const bool resolves_names =
      gang.site.reach == Reach::kLoopback && gang.job.spec.sandbox != job::Sandbox::kNone;
  return resolves_names || address.empty() ? task.hostname : address;
}

const std::string& host_of(const GangContext& gang, size_t index) {
  return host_of(gang, *gang.tasks[index], gang.network.addresses[index]);
}

/// The tasks of a role, in the order of their numbers.
struct Service {
  std::vector<const Task*> tasks;
  std::vector<std::string> hosts;  ///< the address of each service
};

Service service_of(const GangContext& gang, TaskRole role) {
  Service service;
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    if (gang.tasks[i]->role != role) continue;
    service.tasks.push_back(gang.tasks[i]);
    service.hosts.push_back(host_of(gang, i) + ":" + std::to_string(gang.network.service_ports[i]));
  }
  return service;
}

/// Includes every seat, also empty ones: a worker that joins later must have a number of its own,
/// and earlier tasks must have counted it.
Service seats_of_workers(const GangContext& gang) {
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

GrpcPlace::Kind place_kind(TaskRole role) {
  switch (role) {
    case TaskRole::kChief:
      return GrpcPlace::Kind::kChief;
    case TaskRole::kParameterServer:
      return GrpcPlace::Kind::kParameterServer;
    case TaskRole::kEvaluator:
      return GrpcPlace::Kind::kEvaluator;
    case TaskRole::kWorker:
    case TaskRole::kLauncher:
    case TaskRole::kSingle:
    case TaskRole::kMaster:
      break;
  }
  return GrpcPlace::Kind::kWorker;
}

Variables cluster_environment(const GangContext& gang, size_t index) {
  const Task& task = *gang.tasks[index];
  const bool is_live = resizes_live(gang.job.spec);
  const Service workers = is_live ? seats_of_workers(gang) : service_of(gang, TaskRole::kWorker);
  const Service own = task.role == TaskRole::kWorker ? workers : service_of(gang, task.role);
  return grpc_environment({.chief = service_of(gang, TaskRole::kChief).hosts.front(),
                           .workers = workers.hosts,
                           .parameter_servers = service_of(gang, TaskRole::kParameterServer).hosts,
                           .chief_is_worker = gang.job.spec.chief_is_worker},
                          {.kind = place_kind(task.role), .index = number_in(own, task)});
}

TorchPlace torch_place(const GangContext& gang, size_t index) {
  const job::JobSpec& spec = gang.job.spec;
  const int tasks = static_cast<int>(gang.tasks.size());
  const bool is_live = resizes_live(spec);
  return {.master_host = host_of(gang, 0),
          .master_port = gang.network.service_ports[0],
          .host = host_of(gang, index),
          // A live job's task keeps its number while it runs; its replacement gets the same number.
          .rank = is_live ? gang.tasks[index]->seat : static_cast<int>(index),
          .tasks = tasks,
          .min_tasks = is_live ? 1 + *spec.scheduling.min_workers : tasks,
          .max_tasks = is_live ? 1 + spec.workers : tasks,
          .processes_per_task = spec.slots_per_worker,
          .group = gang.job.id + "-" + std::to_string(gang.job.attempt),
          .interface = gang.site.reach == Reach::kLoopback ? kLoopback : ""};
}

Variables kind_environment(const GangContext& gang, size_t index, const std::string& folder) {
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

/// In an image: the image's variables, and those that a login in it would set.
Variables image_environment(const ImageFacts& image) {
  Variables variables = image.environment;
  variables.emplace("HOME", image.account.home);
  // An MPI asks for the shell of an account that has no login shell.
  variables.emplace("SHELL", "/bin/sh");
  if (!image.account.name.empty()) {
    variables.emplace("USER", image.account.name);
    variables.emplace("LOGNAME", image.account.name);
  }
  return variables;
}

/// horovodrun calls "ssh" and has no variable for options, so "ssh" must be the program that
/// resolves the job's tasks (scripts.h).
bool calls_plain_ssh(const GangContext& gang, const Task& task) {
  if (task.role != TaskRole::kLauncher || gang.is_by_agent() || gang.is_by_srun()) return false;
  const std::vector<std::string> command = argv_of(gang, task);
  const std::vector<std::string_view> words = words_of(command);
  return std::any_of(words.begin(), words.end(),
                     [](std::string_view word) { return is_file_named(word, "horovodrun"); });
}

/// `folder` is searched last for a program such as horovodrun.
std::string with_folder_last(const std::string& path, const std::string& folder) {
  const bool is_there = (":" + path + ":").find(":" + folder + ":") != std::string::npos;
  return folder.empty() || is_there ? path : path + ":" + folder;
}

}  // namespace

Variables environment_of(const GangContext& gang, size_t index) {
  const Task& task = *gang.tasks[index];
  const job::JobSpec& spec = gang.job.spec;
  const std::string folder = gang.site.generated_folder(task.name);
  Variables variables;
  // Later values take precedence. The nodes of the map move; no text is copied.
  const auto put = [&](Variables more) {
    more.merge(variables);
    variables.swap(more);
  };
  const ImageFacts* const image = image_of(gang, task);
  if (image != nullptr) put(image_environment(*image));
  put(own_environment(gang, task, folder));
  // The image's programs are in the folders of its PATH.
  if (image != nullptr && image->environment.contains("PATH")) {
    variables["PATH"] = image->environment.at("PATH");
  }
  // The type of most terminals today; a client that attaches later may have another.
  if (index == 0 && spec.terminal) variables["TERM"] = "xterm-256color";
  put(contract_environment(gang.job, task));
  put(kind_environment(gang, index, folder));
  put(image != nullptr ? set_variables_in_image(spec, task.role)
                       : set_variables(spec, task.role, gang.site.images));
  add_secret_variables(spec.secrets, gang.site.secrets, variables);
  if (calls_plain_ssh(gang, task)) variables["PATH"] = folder + "/bin:" + variables["PATH"];
  if (image == nullptr) variables["PATH"] = with_folder_last(variables["PATH"], gang.site.programs);
  // Last: the CUDA_VISIBLE_DEVICES of the submitting shell would select GPUs of other jobs.
  put(devices_of(gang, task));
  return variables;
}

using job::Kind;

size_t rendezvous_task(const GangContext& gang) {
  if (gang.job.spec.kind != Kind::kMpi) return 0;
  const auto first = std::find_if(gang.tasks.begin(), gang.tasks.end(), [](const job::Task* task) {
    return task->role == TaskRole::kWorker;
  });
  return first == gang.tasks.end() ? 0 : static_cast<size_t>(first - gang.tasks.begin());
}

std::vector<ServedPort> served_ports(const GangContext& gang, size_t index) {
  const TaskRole role = gang.tasks[index]->role;
  const ServedPort service{.port = gang.network.service_ports[index], .address = ""};
  switch (gang.job.spec.kind) {
    case Kind::kSingle:
      break;
    case Kind::kMpi:
      if (index != rendezvous_task(gang)) break;
      return {{.port = gang.network.rendezvous_port, .address = gang.network.addresses[index]}};
    case Kind::kGrpc:
      if (role == TaskRole::kEvaluator) break;  // no task connects to it
      return {service};
    case Kind::kTorch:
      // The master's store; a rank chooses its other ports itself.
      if (role != TaskRole::kMaster) break;
      return {service};
  }
  return {};
}

using job::Job;
using job::Volume;

namespace {

constexpr std::string_view kGradient = "gradient/";
constexpr const char* kStorage = "/storage";

/// worker-1: "1"; a leader, of which there is only one: "0".
std::string index_in_role(const std::string& task) {
  const size_t dash = task.rfind('-');
  return dash == std::string::npos ? "0" : task.substr(dash + 1);
}

bool speaks_gradient(const job::JobSpec& spec) {
  const auto first = spec.annotations.lower_bound(std::string(kGradient));
  return first != spec.annotations.end() && first->first.starts_with(kGradient);
}

bool has_storage(const job::JobSpec& spec) {
  return std::any_of(spec.volumes.begin(), spec.volumes.end(), [](const Volume& volume) {
    return volume.kind == Volume::Kind::kStorage && volume.target == kStorage;
  });
}

std::string model_path(const Job& job) {
  const auto annotation = job.spec.annotations.find("gradient/modelPath");
  if (annotation != job.spec.annotations.end() && !annotation->second.empty())
    return annotation->second;
  if (job.spec.kind == job::Kind::kSingle) return "/artifacts";
  return std::string(kStorage) + "/models/" + job.id;
}

}  // namespace

std::map<std::string, std::string> contract_environment(const Job& job, const job::Task& task) {
  std::map<std::string, std::string> variables;
  variables.emplace("JOB_NAME", job.spec.name);
  variables.emplace("JOB_UUID", job.id);
  variables.emplace("POD_INDEX", index_in_role(task.name));
  variables.emplace("POD_UUID", job.id + "-" + std::to_string(job.attempt) + "-" + task.name);
  variables.emplace("NODE_NAME", task.node);
  variables.emplace("RUNAI_PROJECT", job.spec.project);
  variables.emplace("RUNAI_JOB_NAME", job.spec.name);
  variables.emplace("RUNAI_JOB_UUID", job.id);
  variables.emplace("RUNAI_NUM_OF_GPUS", gpus_text(task));
  // The variable of Kubernetes' Indexed Jobs.
  if (job.spec.kind == Kind::kTorch) variables["JOB_COMPLETION_INDEX"] = std::to_string(task.seat);
  if (speaks_gradient(job.spec)) {
    variables["PAPERSPACE_EXPERIMENT_ID"] = job.id;
    variables["PAPERSPACE_METRIC_WORKLOAD_ID"] = job.id;
  }
  if (has_storage(job.spec)) {
    variables["PS_JOBSPACE"] = kStorage;
    variables["PS_MODEL_PATH"] = model_path(job);
  }
  return variables;
}

using job::JobSpec;

namespace {

/// A group of variables with the same purpose.
struct VariableGroup {
  Kind kind;
  std::string_view purpose;
  std::vector<std::string_view> variables;
};

const std::array<VariableGroup, 6>& variable_groups() {
  static const std::array<VariableGroup, 6> kAll{
      {{.kind = Kind::kGrpc,
        .purpose = "the address of each task",
        .variables = {"TF_CONFIG", "PS_CONFIG", "MASTER", "WORKER_HOSTS", "PS_HOSTS"}},
       {.kind = Kind::kGrpc,
        .purpose = "the role and index of the task",
        .variables = {"TYPE", "INDEX"}},
       {.kind = Kind::kTorch,
        .purpose = "the address of the master",
        .variables = {"MASTER_ADDR", "MASTER_PORT", "PET_RDZV_ENDPOINT", "PET_MASTER_ADDR",
                      "PET_MASTER_PORT"}},
       {.kind = Kind::kTorch,
        .purpose = "the rank and the world size",
        .variables = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                      "GROUP_WORLD_SIZE", "NODE_RANK", "PET_NODE_RANK", "PET_NNODES"}},
       {.kind = Kind::kTorch,
        .purpose = "the rendezvous of the attempt",
        .variables = {"PET_RDZV_BACKEND", "PET_RDZV_ID", "PET_RDZV_CONF"}},
       {.kind = Kind::kMpi,
        .purpose = "the path of the hostfile",
        .variables = {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
                      "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"}}}};
  return kAll;
}

using Roles = std::set<TaskRole>;

Roles task_roles_of(const JobSpec& spec) {
  Roles roles;
  for (const job::Task& task : job::tasks_of(spec)) roles.insert(task.role);
  return roles;
}

/// For each variable: the roles in whose tasks the job sets it.
std::map<std::string, Roles> set_in(const JobSpec& spec, const job::ImageStandIns& images,
                                    bool runs_images) {
  std::map<std::string, Roles> roles_by_name;
  for (const TaskRole role : task_roles_of(spec)) {
    const auto variables =
        runs_images ? set_variables_in_image(spec, role) : set_variables(spec, role, images);
    for (const auto& [name, value] : variables) roles_by_name[name].insert(role);
    for (const job::SecretUse& use : spec.secrets) roles_by_name[use.variable].insert(role);
  }
  return roles_by_name;
}

std::string sentence(const std::vector<std::string_view>& names, const std::string& roles,
                     std::string_view purpose) {
  const std::string pronoun = names.size() == 1 ? "it" : "them";
  return "the job itself sets " + base::listed(names) + roles + ", so Muster does not set " +
         pronoun + " (" + std::string(purpose) + "); remove " + pronoun +
         " unless the program finds the other tasks by itself";
}

/// " in tasks of role chief and ps"; empty for all roles of the job.
std::string roles_text(const Roles& roles, const Roles& all) {
  if (roles == all) return "";
  std::vector<std::string_view> names;
  for (const TaskRole role : roles) names.push_back(to_string(role));
  return " in tasks of role " + base::listed(names);
}

}  // namespace

std::vector<std::string> notes_on_own_variables(const JobSpec& spec,
                                                const job::ImageStandIns& images,
                                                bool runs_images) {
  const Roles all = task_roles_of(spec);
  const std::map<std::string, Roles> own = set_in(spec, images, runs_images);
  std::vector<std::string> notes;
  for (const VariableGroup& group : variable_groups()) {
    if (group.kind != spec.kind) continue;
    std::map<Roles, std::vector<std::string_view>> names_by_roles;
    for (const std::string_view name : group.variables) {
      const auto found = own.find(std::string(name));
      if (found != own.end()) names_by_roles[found->second].push_back(name);
    }
    for (const auto& [roles, names] : names_by_roles) {
      notes.push_back(sentence(names, roles_text(roles, all), group.purpose));
    }
  }
  return notes;
}

}  // namespace muster::launch
