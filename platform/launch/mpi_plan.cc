#include "launch/mpi_plan.h"

#include <algorithm>
#include <set>

#include "launch/mpi_environment.h"
#include "launch/mpi_hosts.h"
#include "launch/scripts.h"
#include "launch/srun_command.h"
#include "launch/ssh_files.h"

namespace muster::launch {

using job::Task;
using job::TaskRole;

namespace {

ShellHost shell_host(const GangContext& gang, size_t index, std::string name) {
  const ImageFacts* const image = image_of(gang, *gang.tasks[index]);
  return {.name = std::move(name),
          .address = gang.network.addresses[index],
          .port = gang.network.shell_ports[index],
          .user = image != nullptr ? image->account.name : gang.site.user};
}

/// The loopback interface if all tasks are on one machine, otherwise the network of the hosts.
std::string interfaces_of(const GangContext& gang) {
  switch (gang.site.reach) {
    case Reach::kLoopback:
      return kLoopback;
    case Reach::kNames:
      return "";  // the job has its own network, and no other
    case Reach::kHosts:
      return common_network(gang.network.addresses);
  }
  return "";
}

bool is_on_one_machine(const GangContext& gang) {
  if (gang.site.reach == Reach::kLoopback) return true;
  return std::all_of(gang.tasks.begin(), gang.tasks.end(),
                     [&](const Task* task) { return task->node == gang.tasks.front()->node; });
}

void add_files(TaskPlan& plan, std::vector<PlannedFile> files) {
  for (PlannedFile& file : files) plan.files.push_back(std::move(file));
}

/// The private key for all tasks of the gang.
void add_remote_shell_key(const GangContext& gang, TaskPlan& plan) {
  const std::string folder = gang.is_by_agent() ? kRshFolder : "ssh";
  plan.folders.push_back(folder);
  add_files(
      plan,
      {gang.is_by_agent()
           ? PlannedFile{.path = folder + "/key", .content = gang.rsh_key + "\n", .secret = true}
           : PlannedFile{.path = folder + "/id_ed25519",
                         .content = gang.client_key.private_file,
                         .secret = true}});
}

/// Returns the command that answers ssh, in inetd mode.
std::vector<std::string> add_ssh_server(const GangContext& gang, const Task& task,
                                        const std::string& folder, TaskPlan& plan) {
  const std::string config = folder + "/ssh/sshd_config";
  add_files(plan,
            {{.path = "ssh/host_ed25519", .content = gang.host_key.private_file, .secret = true},
             {.path = "ssh/authorized_keys", .content = gang.client_key.public_line + "\n"},
             {.path = "ssh/sshd_config", .content = sshd_config(folder)},
             {.path = "session",
              .content = session_script(plan.environment, plan.folder),
              .mode = 0700,
              .secret = true}});
  const ImageFacts* const image = image_of(gang, task);
  return {image != nullptr ? image->sshd : gang.site.sshd, "-i", "-e", "-f", config};
}

std::vector<SrunHost> srun_hosts(const GangContext& gang) {
  std::vector<SrunHost> hosts;
  for (const TaskRole role : {TaskRole::kWorker, TaskRole::kLauncher}) {
    for (const Task* const task : gang.tasks) {
      if (task->role != role || !takes_ranks(gang.job.spec, role)) continue;
      const bool is_worker = role == TaskRole::kWorker;
      hosts.push_back(
          {.task = task->name,
           .node = task->node,
           .slots = is_worker ? gang.job.spec.slots_per_worker : gang.job.spec.leader_slots});
    }
  }
  return hosts;
}

/// Whether two tasks share a node. MPI would use shared memory between their ranks, but tasks share
/// none.
bool shares_a_node(const GangContext& gang) {
  std::set<std::string> nodes;
  for (const SrunHost& host : srun_hosts(gang)) {
    if (!nodes.insert(host.node).second) return true;
  }
  return false;
}

/// There is no remote shell: srun reaches every node.
void add_srun_parts(const GangContext& gang, const Task& task, const std::string& folder,
                    TaskPlan& plan) {
  plan.takes_ranks = takes_ranks(gang.job.spec, plan.role);
  if (task.role != TaskRole::kLauncher || is_own_srun(plan.argv)) return;
  const std::vector<SrunHost> hosts = srun_hosts(gang);
  add_files(plan, {srun_nodes_file(hosts), srun_script()});
  plan.argv = srun_command({.srun = gang.site.srun, .joiner = gang.site.joiner, .folder = folder},
                           hosts, plan.argv);
}

}  // namespace

void list_mpi_hosts(GangContext& gang) {
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    if (gang.tasks[i]->role != TaskRole::kWorker) continue;
    gang.shell_hosts.push_back(shell_host(gang, i, gang.tasks[i]->hostname));
  }
  gang.workers = gang.shell_hosts.size();
  gang.slot_hosts = slot_hosts_of(gang.job, gang.tasks);
  if (gang.is_by_srun()) gang.shell_hosts.clear();  // no task answers a remote shell
  const std::string alias = launcher_alias(gang.job);
  if (!alias.empty() && !gang.is_by_srun()) {
    gang.shell_hosts.push_back(shell_host(gang, 0, alias));
  }
}

std::vector<PlannedFile> mpi_reach_files(const GangContext& gang, const std::string& folder) {
  if (gang.job.spec.kind != job::Kind::kMpi || gang.is_by_srun()) return {};
  if (gang.is_by_agent()) {
    return {{.path = std::string(kRshFolder) + "/hosts", .content = rsh_hosts(gang.shell_hosts)}};
  }
  return {{.path = "ssh/config",
           .content = client_config(gang.shell_hosts, folder, is_on_one_machine(gang))},
          {.path = "ssh/known_hosts",
           .content = known_hosts(gang.shell_hosts, gang.host_key.public_line)}};
}

Variables mpi_variables(const GangContext& gang, const std::string& folder) {
  const MpiSite site{.folder = folder,
                     .remote_shell = gang.is_by_agent() ? gang.site.remote_shell : "",
                     .interfaces = interfaces_of(gang)};
  Variables variables =
      gang.is_by_srun() ? rank_environment(site, shares_a_node(gang)) : open_mpi_environment(site);
  if (!gang.is_by_srun()) variables.merge(hydra_environment(site));
  variables["MUSTER_HOSTFILE"] = folder + "/hostfile";
  variables["MUSTER_WORKERS"] = std::to_string(gang.workers);
  variables["RUNAI_MPI_NUM_WORKERS"] = std::to_string(gang.workers);
  if (gang.own_rank_output) variables["MUSTER_RANK_AGENT"] = gang.site.rank_agent;
  return variables;
}

void add_mpi_parts(const GangContext& gang, size_t index, TaskPlan& plan) {
  const Task& task = *gang.tasks[index];
  const std::string folder = gang.site.generated_folder(plan.task);
  plan.folders.emplace_back("ranks");
  add_files(plan, host_files(gang.slot_hosts));
  add_files(plan, {{.path = "rank", .content = rank_script(), .mode = 0700}});
  if (const auto devices = devices_of(gang, task); !devices.empty()) {
    add_files(plan, {{.path = "devices", .content = export_lines(devices)}});
  }
  if (plan.sandbox != job::Sandbox::kNone || image_of(gang, task) != nullptr) {
    plan.also_at = {{kHostfile, "/etc/mpi/hostfile"},
                    {kDiscoverHosts, "/etc/mpi/discover_hosts.sh"}};
  }
  if (gang.is_by_srun()) return add_srun_parts(gang, task, folder, plan);
  if (task.role == TaskRole::kLauncher) {
    plan.mpi = mpi_choice({.command = plan.argv,
                           .set = set_variables_of(gang, task),
                           .reach = plan.reach,
                           .slots_per_worker = gang.job.spec.slots_per_worker});
  }
  add_files(plan, mpi_reach_files(gang, folder));
  add_remote_shell_key(gang, plan);
  const bool is_a_host = takes_ranks(gang.job.spec, plan.role);
  // A launcher that ignores the hostfile starts all ranks in its own task, so ranks are counted
  // there, too.
  plan.takes_ranks = is_a_host || task.role == TaskRole::kLauncher;
  if (!is_a_host) return;
  plan.ssh = SshService{.port = gang.network.shell_ports[index], .bind = gang.network.bind};
  plan.ssh->command = gang.is_by_agent() ? rsh_service(gang.site.remote_shell, folder, plan.folder)
                                         : add_ssh_server(gang, task, folder, plan);
}

}  // namespace muster::launch
