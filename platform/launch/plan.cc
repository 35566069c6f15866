#include "launch/plan.h"

#include <algorithm>

#include "launch/devices.h"
#include "launch/gang.h"
#include "launch/mpi_plan.h"
#include "launch/mpirun_command.h"
#include "launch/program.h"
#include "launch/rank_prefix.h"
#include "launch/secrets.h"
#include "launch/shell_files.h"
#include "launch/task_environment.h"

namespace muster::launch {

using base::Result;
using job::Job;
using job::Role;
using job::Task;

GangSeed make_seed(base::RandomSource& random) {
  return {.client_key = random.bytes<32>(),
          .host_key = random.bytes<32>(),
          .rendezvous_key = random.bytes<32>(),
          .network = random.bytes<8>(),
          .rsh_key = random.bytes<32>()};
}

namespace {

std::vector<const Task*> placed_tasks(const Job& job) {
  std::vector<const Task*> tasks;
  for (const Task& task : job.tasks) {
    if (!task.node.empty()) tasks.push_back(&task);
  }
  return tasks;
}

/// "/generated/hostfile" is what the documents' commands say. Without a sandbox the folder is
/// elsewhere, and the words of the command that lie in it are turned to where it is.
std::vector<std::string> with_generated_paths(std::vector<std::string> command,
                                              const std::string& folder) {
  constexpr std::string_view kPrefix = "/generated/";
  for (std::string& word : command) {
    if (word.starts_with(kPrefix)) word.replace(0, kPrefix.size() - 1, folder);
  }
  return command;
}

using Names = std::vector<std::pair<std::string, std::string>>;

/// What its /etc/hosts is to know.
Names names_for(const Gang& gang, size_t index) {
  const GangNetwork& network = gang.network;
  Names names;
  switch (gang.site.reach) {
    case Reach::kLoopback:
      for (size_t i = 0; i < gang.tasks.size(); ++i) {
        names.emplace_back(gang.tasks[i]->hostname, network.addresses[i]);
      }
      if (const std::string alias = launcher_alias(gang); !alias.empty()) {
        names.emplace_back(alias, network.addresses.front());
      }
      break;
    case Reach::kNames:
      break;  // the network knows them; not the alias, which would be the launcher's own address
    case Reach::kHosts:
      // Its own, and the launcher's, to which Hydra's proxies connect back. Not the workers': one
      // on the launcher's node has its address, and Open MPI would take it for the local host.
      names.emplace_back(gang.tasks[index]->hostname, network.addresses[index]);
      if (index > 0) names.emplace_back(gang.tasks[0]->hostname, network.addresses[0]);
      break;
  }
  return names;
}

void add_leaders_parts(const job::JobSpec& spec, TaskPlan& plan) {
  plan.tags_ranks = !spec.terminal && (plan.role == Role::kLauncher || plan.role == Role::kSingle);
  plan.prepends_rank = plan.tags_ranks && prepends_rank(plan.argv);
  plan.input = spec.input;
  plan.terminal = spec.terminal;
}

void add_image(const Gang& gang, const Task& task, TaskPlan& plan) {
  plan.image = image_of(gang.job.spec, task.role);
  if (const ImageFacts* const image = image_of(gang, task)) {
    plan.image = image->id;
    plan.account = image->account;
  }
}

ShellReach shell_reach(const Gang& gang) {
  ShellReach reach;
  if (gang.shell_hosts.empty()) return reach;
  if (gang.is_by_agent()) {
    reach.remote_shell = gang.site.remote_shell;
  } else {
    for (const ShellHost& host : gang.shell_hosts) reach.ssh_hosts.push_back(host.name);
  }
  return reach;
}

TaskPlan plan_task(const Gang& gang, size_t index) {
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
                .volumes = spec.volumes,
                .sandbox = spec.sandbox,
                .grace = spec.grace,
                .folders = {"tmp"},
                .gpus = device_names(task, gpus_of(gang, task)),
                .own_rank_output = gang.own_rank_output,
                .hosts = names_for(gang, index)};
  add_image(gang, task, plan);
  if (index == 0) add_leaders_parts(spec, plan);  // which people sit before
  if (spec.kind == job::Kind::kMpi) add_mpi_parts(gang, index, plan);
  add_shell_files(shell_reach(gang), generated, plan);
  add_secret_files(spec.secrets, gang.site.secrets, plan);
  return plan;
}

/// Parameter servers, then workers, then who leads: nobody calls one that is not there yet.
GangPlan plan_stages(const Gang& gang) {
  GangPlan plan;
  for (const Role role : {Role::kParameterServer, Role::kWorker}) {
    for (size_t i = 0; i < gang.tasks.size(); ++i) {
      if (gang.tasks[i]->role == role) plan.first.push_back(plan_task(gang, i));
    }
  }
  plan.then.push_back(plan_task(gang, 0));
  return plan;
}

Result<std::vector<NetworkPlace>> places_of(const std::vector<const Task*>& tasks,
                                            const Site& site) {
  std::vector<NetworkPlace> places;
  for (const Task* task : tasks) {
    NetworkPlace place{.hostname = task->hostname, .node_address = ""};
    if (site.reach == Reach::kHosts && site.address_of) {
      place.node_address = site.address_of(task->node);
    }
    if (site.reach == Reach::kHosts && place.node_address.empty()) {
      return base::Error{.code = base::ErrorCode::kRefused,
                         .what = "node '" + task->node + "' has no address that others reach",
                         .advice = "the server's setting host_addresses says which it has"};
    }
    places.push_back(std::move(place));
  }
  return places;
}

Result<void> check_can_be_planned(const Job& job, const Site& site) {
  if (job::deciding_task(job).node.empty()) {
    return base::Error{.code = base::ErrorCode::kInternal,
                       .what = "job '" + job.spec.name + "' starts without a place"};
  }
  return check_secrets(job.spec.secrets, site.secrets);
}

}  // namespace

Result<GangPlan> plan_gang(const Job& job, const GangSeed& seed, const Site& site) {
  MUSTER_CHECK(check_can_be_planned(job, site));
  const std::vector<const Task*> tasks = placed_tasks(job);
  MUSTER_TRY(const std::vector<NetworkPlace> places, places_of(tasks, site));
  Gang gang{.job = job,
            .site = site,
            .tasks = tasks,
            .network = make_network(seed.network, site.reach, places),
            .rsh_key = base::to_hex(seed.rsh_key),
            .rendezvous_key = base::to_hex(seed.rendezvous_key)};
  if (job.spec.kind == job::Kind::kMpi) {
    if (!gang.is_by_agent()) {  // these cost more than the rest of the plan
      MUSTER_TRY(gang.client_key, ssh_key_from_seed(seed.client_key));
      MUSTER_TRY(gang.host_key, ssh_key_from_seed(seed.host_key));
    }
    list_mpi_hosts(gang);
    gang.own_rank_output =
        !site.rank_agent.empty() && is_plain_mpirun(argv_of(gang, *tasks.front()));
  }
  return plan_stages(gang);
}

}  // namespace muster::launch
