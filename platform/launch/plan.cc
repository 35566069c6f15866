#include "launch/plan.h"

#include <algorithm>

#include "launch/contract_environment.h"
#include "launch/devices.h"
#include "launch/grpc_cluster.h"
#include "launch/hostfile.h"
#include "launch/mpi_environment.h"
#include "launch/mpirun_command.h"
#include "launch/network.h"
#include "launch/program.h"
#include "launch/rank_prefix.h"
#include "launch/scripts.h"
#include "launch/secrets.h"
#include "launch/shell_files.h"
#include "launch/ssh_files.h"
#include "launch/ssh_key.h"
#include "launch/torch_group.h"

namespace muster::launch {

using base::Result;
using job::Job;
using job::Role;
using job::Task;

using Variables = std::map<std::string, std::string>;

GangSeed make_seed(base::RandomSource& random) {
  return {.client_key = random.bytes<32>(),
          .host_key = random.bytes<32>(),
          .rendezvous_key = random.bytes<32>(),
          .network = random.bytes<8>()};
}

namespace {

/// What every task of the gang shares.
struct Gang {
  const Job& job;
  const Site& site;
  std::vector<const Task*> tasks;  ///< those that were placed
  GangNetwork network;             ///< of each of these
  SshKey client_key;
  SshKey host_key;
  std::string rendezvous_key;        ///< hexadecimal
  std::vector<SshHost> ssh_hosts;    ///< those that answer ssh
  std::vector<SlotHost> slot_hosts;  ///< those that take ranks
  size_t workers = 0;                ///< of an MPI job
  bool own_rank_output = false;
};

std::vector<const Task*> placed_tasks(const Job& job) {
  std::vector<const Task*> tasks;
  for (const Task& task : job.tasks) {
    if (!task.node.empty()) tasks.push_back(&task);
  }
  return tasks;
}

/// Whether ranks are started in it, by ssh.
bool takes_ranks(const job::JobSpec& spec, Role role) {
  return role == Role::kWorker || (role == Role::kLauncher && spec.leader_slots > 0);
}

/// Open MPI puts the host that it runs on before all others, whatever the hostfile says. By another
/// name it is a host like the rest, and the last.
std::string name_as_last_host(const Task& launcher) {
  return launcher.hostname + "-0";
}

/// The workers, and last the launcher where it takes ranks: mpirun fills hosts from the top.
void list_mpi_hosts(Gang& gang) {
  const job::JobSpec& spec = gang.job.spec;
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    if (gang.tasks[i]->role != Role::kWorker) continue;
    gang.ssh_hosts.push_back({gang.tasks[i]->hostname, gang.network.addresses[i]});
    gang.slot_hosts.push_back({gang.tasks[i]->hostname, spec.slots_per_worker});
  }
  gang.workers = gang.ssh_hosts.size();
  if (spec.leader_slots > 0) {
    const std::string name = name_as_last_host(*gang.tasks.front());
    gang.ssh_hosts.push_back({name, gang.network.addresses.front()});
    gang.slot_hosts.push_back({name, spec.leader_slots});
  }
}

/// Where rank 0 gathers the others. mpirun puts it on the first worker of the hostfile.
std::string rendezvous_address(const Gang& gang) {
  const std::string& first =
      gang.ssh_hosts.empty() ? gang.network.addresses.front() : gang.ssh_hosts.front().address;
  return first + ":" + std::to_string(gang.network.rendezvous_port);
}

std::vector<std::string> gpus_of(const Gang& gang, const Task& task) {
  return gang.site.gpus_of ? gang.site.gpus_of(task.node) : std::vector<std::string>();
}

/// Empty where the job has nothing to do with GPUs: no task of it claims one, and its node has
/// none that anybody else could claim.
Variables devices_of(const Gang& gang, const Task& task) {
  const std::vector<std::string> gpus = gpus_of(gang, task);
  if (gpus.empty() && !asks_for_gpus(gang.job.spec)) return {};
  return device_environment(task, gpus);
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

/// By name, where the task has an /etc/hosts of the job's.
const std::string& host_of(const Gang& gang, size_t index) {
  const bool knows_names = gang.job.spec.sandbox != job::Sandbox::kNone;
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
    case job::Kind::kMpi: {
      Variables variables = open_mpi_environment(folder);
      variables.merge(hydra_environment(folder));
      variables["MUSTER_HOSTFILE"] = folder + "/hostfile";
      variables["MUSTER_WORKERS"] = std::to_string(gang.workers);
      variables["RUNAI_MPI_NUM_WORKERS"] = std::to_string(gang.workers);
      if (gang.own_rank_output) variables["MUSTER_RANK_AGENT"] = gang.site.rank_agent;
      return variables;
    }
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

Variables environment_of(const Gang& gang, size_t index) {
  const Task& task = *gang.tasks[index];
  const job::JobSpec& spec = gang.job.spec;
  const std::string folder = gang.site.generated_folder(task.name);
  Variables variables = own_environment(gang, task, folder);
  // What today's terminals understand; whoever is attached later may have another.
  if (index == 0 && spec.terminal) variables["TERM"] = "xterm-256color";
  const auto put = [&](const Variables& more) {
    for (const auto& [name, value] : more) variables[name] = value;
  };
  put(contract_environment(gang.job, task));
  put(kind_environment(gang, index, folder));
  put(set_variables(spec, task.role, gang.site.images));
  add_secret_variables(spec.secrets, gang.site.secrets, variables);
  // Last: the CUDA_VISIBLE_DEVICES of the shell that submitted would lead to GPUs that others hold.
  put(devices_of(gang, task));
  return variables;
}

void add_mpi_files(const Gang& gang, const Task& task, TaskPlan& plan) {
  const std::string folder = gang.site.generated_folder(plan.task);
  plan.folders.insert(plan.folders.end(), {"ssh", "ranks"});
  plan.files = {
      {.path = "hostfile", .content = open_mpi_hostfile(gang.slot_hosts)},
      {.path = "hostfile.intel", .content = hydra_hostfile(gang.slot_hosts)},
      {.path = "ssh/config",
       .content = client_config(gang.ssh_hosts, gang.network.ssh_port, gang.site.user, folder)},
      {.path = "ssh/known_hosts",
       .content = known_hosts(gang.ssh_hosts, gang.host_key.public_line)},
      {.path = "ssh/id_ed25519", .content = gang.client_key.private_file, .secret = true},
      {.path = "rank", .content = rank_script(), .mode = 0700},
  };
  if (const auto devices = devices_of(gang, task); !devices.empty()) {
    plan.files.push_back({.path = "devices", .content = export_lines(devices)});
  }
  if (plan.sandbox != job::Sandbox::kNone) plan.also_at = {{"hostfile", "/etc/mpi/hostfile"}};
  if (!takes_ranks(gang.job.spec, plan.role)) return;
  plan.files.insert(
      plan.files.end(),
      {{.path = "ssh/host_ed25519", .content = gang.host_key.private_file, .secret = true},
       {.path = "ssh/authorized_keys", .content = gang.client_key.public_line + "\n"},
       {.path = "ssh/sshd_config", .content = sshd_config(folder)},
       {.path = "session",
        .content = session_script(plan.environment, plan.folder),
        .mode = 0700,
        .secret = true}});
  plan.ssh = SshService{.port = gang.network.ssh_port,
                        .command = {gang.site.sshd, "-i", "-e", "-f", folder + "/ssh/sshd_config"}};
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

TaskPlan plan_task(const Gang& gang, size_t index) {
  const Task& task = *gang.tasks[index];
  const job::JobSpec& spec = gang.job.spec;
  const job::ImageStandIns& images = gang.site.images;
  TaskPlan plan{.task = task.name,
                .role = task.role,
                .node = task.node,
                .hostname = task.hostname,
                .address = gang.network.addresses[index],
                .argv = with_generated_paths(program_of(spec, task.role, images),
                                             gang.site.generated_folder(task.name)),
                .environment = environment_of(gang, index),
                .folder = folder_of(spec, task.role, images),
                .image = image_of(spec, task.role),
                .project = spec.project,
                .volumes = spec.volumes,
                .sandbox = spec.sandbox,
                .grace = spec.grace,
                .folders = {"tmp"},
                .gpus = device_names(task, gpus_of(gang, task)),
                .own_rank_output = gang.own_rank_output};
  if (index == 0) {  // the leader, which people sit before
    plan.tags_ranks =
        !spec.terminal && (task.role == Role::kLauncher || task.role == Role::kSingle);
    plan.prepends_rank = plan.tags_ranks && prepends_rank(plan.argv);
    plan.input = spec.input;
    plan.terminal = spec.terminal;
  }
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    plan.hosts.emplace_back(gang.tasks[i]->hostname, gang.network.addresses[i]);
  }
  if (spec.kind == job::Kind::kMpi) {
    if (spec.leader_slots > 0) {
      plan.hosts.emplace_back(gang.slot_hosts.back().name, gang.network.addresses.front());
    }
    add_mpi_files(gang, task, plan);
  }
  std::vector<std::string> ssh_names;
  for (const SshHost& host : gang.ssh_hosts) ssh_names.push_back(host.name);
  add_shell_files(ssh_names, gang.site.generated_folder(task.name), plan);
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

}  // namespace

Result<GangPlan> plan_gang(const Job& job, const GangSeed& seed, const Site& site) {
  if (job::deciding_task(job).node.empty()) {
    return base::Error{.code = base::ErrorCode::kInternal,
                       .what = "job '" + job.spec.name + "' starts without a place"};
  }
  MUSTER_CHECK(check_secrets(job.spec.secrets, site.secrets));
  const std::vector<const Task*> tasks = placed_tasks(job);
  SshKey client_key;
  SshKey host_key;
  if (job.spec.kind == job::Kind::kMpi) {  // keys cost more than the rest of the plan
    MUSTER_TRY(client_key, ssh_key_from_seed(seed.client_key));
    MUSTER_TRY(host_key, ssh_key_from_seed(seed.host_key));
  }
  Gang gang{.job = job,
            .site = site,
            .tasks = tasks,
            .network = make_network(seed.network, tasks.size()),
            .client_key = std::move(client_key),
            .host_key = std::move(host_key),
            .rendezvous_key = base::to_hex(seed.rendezvous_key),
            .own_rank_output = false};
  if (job.spec.kind == job::Kind::kMpi) {
    list_mpi_hosts(gang);
    gang.own_rank_output = !site.rank_agent.empty() &&
                           is_plain_mpirun(program_of(job.spec, tasks.front()->role, site.images));
  }
  return plan_stages(gang);
}

}  // namespace muster::launch
