#include "launch/plan.h"

#include <algorithm>

#include "launch/devices.h"
#include "launch/mpi_environment.h"
#include "launch/mpirun_command.h"
#include "launch/network.h"
#include "launch/scripts.h"
#include "launch/secrets.h"
#include "launch/ssh_files.h"
#include "launch/ssh_key.h"

namespace muster::launch {

using base::Result;
using job::Job;
using job::Role;
using job::Task;

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
  std::string rendezvous_key;  ///< hexadecimal
  std::vector<SshHost> hosts;
  bool own_rank_output = false;
};

std::vector<const Task*> placed_tasks(const Job& job) {
  std::vector<const Task*> tasks;
  for (const Task& task : job.tasks) {
    if (!task.node.empty()) tasks.push_back(&task);
  }
  return tasks;
}

std::string hostfile(const Gang& gang) {
  const std::string slots = " slots=" + std::to_string(gang.job.spec.slots_per_worker) + "\n";
  std::string text;
  for (const SshHost& host : gang.hosts) text += host.name + slots;
  return text;
}

/// Where rank 0 gathers the others. mpirun puts it on the first worker of the hostfile.
std::string rendezvous_address(const Gang& gang) {
  const std::string& first =
      gang.hosts.empty() ? gang.network.addresses.front() : gang.hosts.front().address;
  return first + ":" + std::to_string(gang.network.rendezvous_port);
}

/// Empty where the job has nothing to do with GPUs: no task of it claims one, and its node has
/// none that anybody else could claim.
std::map<std::string, std::string> devices_of(const Gang& gang, const Task& task) {
  std::vector<std::string> gpus;
  if (gang.site.gpus_of) gpus = gang.site.gpus_of(task.node);
  if (gpus.empty() && !asks_for_gpus(gang.job.spec)) return {};
  return device_environment(task, gpus);
}

std::map<std::string, std::string> environment_of(const Gang& gang, const Task& task) {
  const job::JobSpec& spec = gang.job.spec;
  const std::string folder = gang.site.generated_folder(task.name);
  std::map<std::string, std::string> variables{
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"TMPDIR", folder + "/tmp"},
      {"MUSTER_JOB", spec.name},
      {"MUSTER_JOB_ID", gang.job.id},
      {"MUSTER_PROJECT", spec.project},
      {"MUSTER_TASK", task.name},
      {"MUSTER_ATTEMPT", std::to_string(gang.job.attempt)},
      {"MUSTER_RESTART_COUNT", std::to_string(gang.job.restarts)},
      {"MUSTER_GENERATED", folder},
      {"MUSTER_RENDEZVOUS", rendezvous_address(gang)},
      {"MUSTER_RENDEZVOUS_KEY", gang.rendezvous_key},
  };
  if (spec.kind == job::Kind::kMpi) {
    variables.merge(open_mpi_environment(folder));
    variables["MUSTER_HOSTFILE"] = folder + "/hostfile";
    variables["MUSTER_WORKERS"] = std::to_string(gang.hosts.size());
  }
  if (gang.own_rank_output) variables["MUSTER_RANK_AGENT"] = gang.site.rank_agent;
  for (const auto& [name, value] : spec.environment) variables[name] = value;
  add_secret_variables(spec.secrets, gang.site.secrets, variables);
  // Last: the CUDA_VISIBLE_DEVICES of the shell that submitted would lead to GPUs that others hold.
  for (const auto& [name, value] : devices_of(gang, task)) variables[name] = value;
  return variables;
}

void add_mpi_files(const Gang& gang, const Task& task, TaskPlan& plan) {
  const std::string folder = gang.site.generated_folder(plan.task);
  plan.folders.insert(plan.folders.end(), {"ssh", "ranks"});
  plan.files = {
      {.path = "hostfile", .content = hostfile(gang)},
      {.path = "ssh/config",
       .content = client_config(gang.hosts, gang.network.ssh_port, gang.site.user, folder)},
      {.path = "ssh/known_hosts", .content = known_hosts(gang.hosts, gang.host_key.public_line)},
      {.path = "ssh/id_ed25519", .content = gang.client_key.private_file, .secret = true},
      {.path = "rank", .content = rank_script(), .mode = 0700},
  };
  if (const auto devices = devices_of(gang, task); !devices.empty()) {
    plan.files.push_back({.path = "devices", .content = export_lines(devices)});
  }
  if (plan.role != Role::kWorker) return;
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
  TaskPlan plan{.task = task.name,
                .role = task.role,
                .node = task.node,
                .hostname = task.hostname,
                .address = gang.network.addresses[index],
                .environment = environment_of(gang, task),
                .folder = spec.folder,
                .sandbox = spec.sandbox,
                .grace = spec.grace,
                .folders = {"tmp"},
                .own_rank_output = gang.own_rank_output};
  if (task.role != Role::kWorker) {
    plan.argv = with_generated_paths(spec.command, gang.site.generated_folder(task.name));
  }
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    plan.hosts.emplace_back(gang.tasks[i]->hostname, gang.network.addresses[i]);
  }
  if (spec.kind == job::Kind::kMpi) add_mpi_files(gang, task, plan);
  add_secret_files(spec.secrets, gang.site.secrets, plan);
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
            .own_rank_output = !site.rank_agent.empty() && is_plain_mpirun(job.spec)};
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    if (gang.tasks[i]->role != Role::kWorker) continue;
    gang.hosts.push_back({gang.tasks[i]->hostname, gang.network.addresses[i]});
  }
  GangPlan plan;
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    auto& stage = gang.tasks[i]->role == Role::kWorker ? plan.first : plan.then;
    stage.push_back(plan_task(gang, i));
  }
  return plan;
}

}  // namespace muster::launch
