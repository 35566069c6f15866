#include "launch/plan_task.h"

#include <algorithm>

#include "job/spec.h"
#include "launch/devices.h"
#include "launch/mpi_hosts.h"
#include "launch/mpi_plan.h"
#include "launch/scripts.h"
#include "launch/secrets.h"
#include "launch/task_environment.h"

namespace muster::launch {

using job::Task;
using job::TaskRole;

namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

/// "/generated/hostfile" is the path in the documents' commands. Without a sandbox, the folder is
/// elsewhere, and such paths in the command are replaced.
std::vector<std::string> with_generated_paths(std::vector<std::string> command,
                                              const std::string& folder) {
  constexpr std::string_view kPrefix = "/generated/";
  for (std::string& word : command) {
    if (word.starts_with(kPrefix)) word.replace(0, kPrefix.size() - 1, folder);
  }
  return command;
}

void add_leaders_parts(const job::JobSpec& spec, TaskPlan& plan) {
  plan.tags_ranks =
      !spec.terminal && (plan.role == TaskRole::kLauncher || plan.role == TaskRole::kSingle);
  plan.prepends_rank = plan.tags_ranks && prepends_rank(plan.argv);
  plan.input = spec.input;
  plan.terminal = spec.terminal;
}

void add_image(const GangContext& gang, const Task& task, TaskPlan& plan) {
  plan.image = image_of(gang.job.spec, task.role);
  if (const ImageFacts* const image = image_of(gang, task)) {
    plan.image = image->id;
    plan.account = image->account;
  }
}

/// The values of a sweep's trial, for programs that read a file.
void add_parameters(const job::JobSpec& spec, TaskPlan& plan) {
  const auto parameters = spec.environment.find("MUSTER_PARAMETERS");
  if (parameters == spec.environment.end()) return;
  plan.files.push_back({.path = "parameters.json", .content = parameters->second + "\n"});
}

ShellReach shell_reach(const GangContext& gang) {
  ShellReach reach;
  if (gang.shell_hosts.empty()) return reach;
  if (gang.is_by_agent()) {
    reach.remote_shell = gang.site.remote_shell;
  } else {
    for (const ShellHost& host : gang.shell_hosts) reach.ssh_hosts.push_back(host.name);
  }
  return reach;
}

}  // namespace

Names names_for(const GangContext& gang, size_t index) {
  const GangNetwork& network = gang.network;
  Names names;
  switch (gang.site.reach) {
    case Reach::kLoopback:
      for (size_t i = 0; i < gang.tasks.size(); ++i) {
        names.emplace_back(gang.tasks[i]->hostname, network.addresses[i]);
      }
      if (const std::string alias = launcher_alias(gang.job); !alias.empty()) {
        names.emplace_back(alias, network.addresses.front());
      }
      break;
    case Reach::kNames:
      // The network resolves names, except the alias, which would resolve to the launcher's own
      // address.
      break;
    case Reach::kHosts:
      // Its own name, and the launcher's, to which Hydra's proxies connect back. Not the workers'
      // names: a worker on the launcher's node has the same address, and Open MPI would mistake it
      // for the local host.
      names.emplace_back(gang.tasks[index]->hostname, network.addresses[index]);
      if (index > 0) names.emplace_back(gang.tasks[0]->hostname, network.addresses[0]);
      break;
  }
  return names;
}

std::vector<PlannedFile> reach_files(const GangContext& gang, size_t index) {
  const std::string folder = gang.site.generated_folder(gang.tasks[index]->name);
  std::vector<PlannedFile> files = mpi_reach_files(gang, folder);
  if (auto shell = shell_hosts_file(shell_reach(gang), folder)) files.push_back(*std::move(shell));
  return files;
}

TaskPlan plan_task(const GangContext& gang, size_t index) {
  const Task& task = *gang.tasks[index];
  const job::JobSpec& spec = gang.job.spec;
  const std::string generated = gang.site.generated_folder(task.name);
  TaskPlan plan{.task = task.name,
                .role = task.role,
                .node = task.node,
                .hostname = task.hostname,
                .reach = gang.site.reach,
                .address = gang.network.addresses[index],
                .argv = with_generated_paths(argv_of(gang, task), generated),
                .environment = environment_of(gang, index),
                .folder = folder_of(gang, task),
                .container = spec.container,
                .resources = job::resources_of(spec, task.role),
                .devices = task.devices,
                .project = spec.project,
                .owner = gang.job.owner,
                .volumes = spec.volumes,
                .sandbox = spec.sandbox,
                .grace = spec.grace,
                .folders = {"tmp"},
                .serves = served_ports(gang, index),
                .gpus = device_names(task, gpus_of(gang, task)),
                .own_rank_output = gang.own_rank_output,
                .hosts = names_for(gang, index)};
  add_image(gang, task, plan);
  if (index == 0) add_leaders_parts(spec, plan);  // users attach to the leader
  if (spec.kind == job::Kind::kMpi) add_mpi_parts(gang, index, plan);
  add_shell_files(shell_reach(gang), generated, plan);
  add_secret_files(spec.secrets, gang.site.secrets, plan);
  add_parameters(spec, plan);
  return plan;
}

using job::JobSpec;
using job::RoleSpec;
using job::Volume;

namespace {

using Words = std::vector<std::string>;

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

void put(std::map<std::string, std::string>& variables,
         const std::map<std::string, std::string>& more) {
  for (const auto& [name, value] : more) variables[name] = value;
}

bool brings_files(const JobSpec& spec) {
  return std::any_of(spec.volumes.begin(), spec.volumes.end(),
                     [](const Volume& volume) { return volume.kind == Volume::Kind::kTree; });
}

bool has_command(const JobSpec& spec, TaskRole role) {
  const RoleSpec* const own = role_spec(spec, role);
  return !spec.command.empty() || (own != nullptr && !own->command.empty());
}

}  // namespace

const RoleSpec* role_spec(const JobSpec& spec, TaskRole role) {
  switch (role) {
    case TaskRole::kLauncher:
    case TaskRole::kChief:
    case TaskRole::kMaster:
      return &spec.leader;
    case TaskRole::kParameterServer:
      return &spec.parameter_server;
    case TaskRole::kEvaluator:
      return &spec.evaluator;
    case TaskRole::kWorker:
    case TaskRole::kSingle:
      break;
  }
  return nullptr;
}

const std::string& image_of(const JobSpec& spec, TaskRole role) {
  const RoleSpec* const own = role_spec(spec, role);
  return own == nullptr || own->image.empty() ? spec.image : own->image;
}

Words program_of(const JobSpec& spec, TaskRole role, const job::ImageStandIns& images) {
  if (role == TaskRole::kWorker && spec.kind == job::Kind::kMpi) return spec.worker_command;
  const RoleSpec* const own = role_spec(spec, role);
  Words words;
  if (own != nullptr && !own->command.empty()) {
    words = own->command;
  } else {
    words = spec.command;
    const job::ImageStandIn* const stand_in = job::find_stand_in(images, image_of(spec, role));
    if (words.empty() && stand_in != nullptr) words = stand_in->command;
    append(words, spec.arguments);
  }
  if (own != nullptr) append(words, own->arguments);
  return words;
}

Words program_in_image(const JobSpec& spec, TaskRole role, const ImageFacts& image) {
  Words asked = program_of(spec, role, {});
  // The command of MPI workers is independent of the job's command.
  if (role == TaskRole::kWorker && spec.kind == job::Kind::kMpi) return asked;
  if (has_command(spec, role) && spec.replaces_entrypoint) return asked;
  Words words = image.entrypoint;
  append(words, asked.empty() ? image.command : asked);
  return words;
}

std::string folder_in_image(const JobSpec& spec, const ImageFacts& image) {
  if (!spec.folder.empty() && !job::inherits_folder(spec)) return spec.folder;
  return image.folder.empty() ? "/" : image.folder;
}

std::map<std::string, std::string> set_variables_in_image(const JobSpec& spec, TaskRole role) {
  std::map<std::string, std::string> variables = spec.environment;
  for (const std::string& name : job::inherited_variables(spec)) variables.erase(name);
  if (const RoleSpec* const own = role_spec(spec, role)) put(variables, own->environment);
  return variables;
}

std::string folder_of(const JobSpec& spec, TaskRole role, const job::ImageStandIns& images) {
  const job::ImageStandIn* const stand_in = job::find_stand_in(images, image_of(spec, role));
  if (stand_in == nullptr || stand_in->folder.empty() || brings_files(spec)) return spec.folder;
  return stand_in->folder;
}

std::map<std::string, std::string> set_variables(const JobSpec& spec, TaskRole role,
                                                 const job::ImageStandIns& images) {
  std::map<std::string, std::string> variables;
  if (const auto* const stand_in = job::find_stand_in(images, image_of(spec, role))) {
    variables = stand_in->environment;
  }
  put(variables, spec.environment);
  if (const RoleSpec* const own = role_spec(spec, role)) put(variables, own->environment);
  return variables;
}

}  // namespace muster::launch
