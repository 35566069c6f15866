#include "launch/mpi_plan.h"

#include "launch/mpi_environment.h"
#include "launch/rsh_files.h"
#include "launch/scripts.h"

namespace muster::launch {

using job::Role;
using job::Task;

namespace {

/// Open MPI puts the host that it runs on before all others, whatever the hostfile says. By another
/// name it is a host like the rest, and the last.
std::string name_as_last_host(const Task& launcher) {
  return launcher.hostname + "-0";
}

ShellHost shell_host(const Gang& gang, size_t index, std::string name) {
  const ImageFacts* const image = image_of(gang, *gang.tasks[index]);
  return {.name = std::move(name),
          .address = gang.network.addresses[index],
          .port = gang.network.shell_ports[index],
          .user = image != nullptr ? image->account.name : gang.site.user};
}

/// Where nobody outside can reach what the ranks say to each other, or at least where the others
/// are.
std::string interfaces_of(const Gang& gang) {
  switch (gang.site.reach) {
    case Reach::kLoopback:
      return kLoopback;
    case Reach::kNames:
      return "";  // the network of the job is all there is
    case Reach::kHosts:
      return common_network(gang.network.addresses);
  }
  return "";
}

void add_files(TaskPlan& plan, std::vector<PlannedFile> files) {
  for (PlannedFile& file : files) plan.files.push_back(std::move(file));
}

/// Every task has what reaches the others: with many hosts, MPIs start some from others.
void add_ssh_client(const Gang& gang, const std::string& folder, TaskPlan& plan) {
  plan.folders.emplace_back("ssh");
  add_files(plan,
            {{.path = "ssh/config", .content = client_config(gang.shell_hosts, folder)},
             {.path = "ssh/known_hosts",
              .content = known_hosts(gang.shell_hosts, gang.host_key.public_line)},
             {.path = "ssh/id_ed25519", .content = gang.client_key.private_file, .secret = true}});
}

void add_rsh_files(const Gang& gang, TaskPlan& plan) {
  const std::string rsh = kRshFolder;
  plan.folders.push_back(rsh);
  add_files(plan, {{.path = rsh + "/hosts", .content = rsh_hosts(gang.shell_hosts)},
                   {.path = rsh + "/key", .content = gang.rsh_key + "\n", .secret = true}});
}

/// What answers, in inetd mode.
std::vector<std::string> add_ssh_server(const Gang& gang, const Task& task,
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

}  // namespace

void list_mpi_hosts(Gang& gang) {
  const job::JobSpec& spec = gang.job.spec;
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    if (gang.tasks[i]->role != Role::kWorker) continue;
    gang.shell_hosts.push_back(shell_host(gang, i, gang.tasks[i]->hostname));
    gang.slot_hosts.push_back({gang.tasks[i]->hostname, spec.slots_per_worker});
  }
  gang.workers = gang.shell_hosts.size();
  if (spec.leader_slots > 0) {
    const std::string name = launcher_alias(gang);
    gang.shell_hosts.push_back(shell_host(gang, 0, name));
    gang.slot_hosts.push_back({name, spec.leader_slots});
  }
}

std::string launcher_alias(const Gang& gang) {
  const bool takes_any = gang.job.spec.kind == job::Kind::kMpi && gang.job.spec.leader_slots > 0;
  return takes_any ? name_as_last_host(*gang.tasks.front()) : "";
}

Variables mpi_variables(const Gang& gang, const std::string& folder) {
  const MpiSite site{.folder = folder,
                     .remote_shell = gang.is_by_agent() ? gang.site.remote_shell : "",
                     .interfaces = interfaces_of(gang)};
  Variables variables = open_mpi_environment(site);
  variables.merge(hydra_environment(site));
  variables["MUSTER_HOSTFILE"] = folder + "/hostfile";
  variables["MUSTER_WORKERS"] = std::to_string(gang.workers);
  variables["RUNAI_MPI_NUM_WORKERS"] = std::to_string(gang.workers);
  if (gang.own_rank_output) variables["MUSTER_RANK_AGENT"] = gang.site.rank_agent;
  return variables;
}

void add_mpi_parts(const Gang& gang, size_t index, TaskPlan& plan) {
  const Task& task = *gang.tasks[index];
  const std::string folder = gang.site.generated_folder(plan.task);
  plan.folders.emplace_back("ranks");
  add_files(plan, {{.path = "hostfile", .content = open_mpi_hostfile(gang.slot_hosts)},
                   {.path = "hostfile.intel", .content = hydra_hostfile(gang.slot_hosts)},
                   {.path = "rank", .content = rank_script(), .mode = 0700}});
  if (const auto devices = devices_of(gang, task); !devices.empty()) {
    add_files(plan, {{.path = "devices", .content = export_lines(devices)}});
  }
  if (plan.sandbox != job::Sandbox::kNone || image_of(gang, task) != nullptr) {
    plan.also_at = {{"hostfile", "/etc/mpi/hostfile"}};
  }
  if (task.role == Role::kLauncher) {
    plan.mpi = mpi_choice({.command = plan.argv,
                           .set = set_variables_of(gang, task),
                           .reach = plan.reach,
                           .slots_per_worker = gang.job.spec.slots_per_worker});
  }
  if (gang.is_by_agent()) {
    add_rsh_files(gang, plan);
  } else {
    add_ssh_client(gang, folder, plan);
  }
  const bool is_a_host = takes_ranks(gang.job.spec, plan.role);
  // A launcher that reads no hostfile starts all of them in its own task; whoever counts ranks has
  // to see that.
  plan.takes_ranks = is_a_host || task.role == Role::kLauncher;
  if (!is_a_host) return;
  plan.ssh = SshService{.port = gang.network.shell_ports[index], .bind = gang.network.bind};
  plan.ssh->command = gang.is_by_agent() ? rsh_service(gang.site.remote_shell, folder, plan.folder)
                                         : add_ssh_server(gang, task, folder, plan);
}

}  // namespace muster::launch
