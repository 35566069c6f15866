#include "engine/process/task_layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "engine/host_facts.h"
#include "engine/process/account_files.h"
#include "engine/process/cgroup_limits.h"
#include "engine/process/hosts_file.h"
#include "engine/process/sandbox.h"
#include "engine/process/sandbox_root.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;

namespace {

Result<void> write_account_files(const TaskFolder& folder) {
  MUSTER_TRY(const std::string passwd, base::read_file("/etc/passwd"));
  const std::string user = user_name();
  MUSTER_CHECK(base::write_new_file(folder.passwd(), with_plain_shell(passwd, user), 0644));
  return base::write_new_file(folder.shadow(), unlocked_shadow(user));
}

/// sshd refuses to be started by root without this folder, which its package makes only when the
/// system's own sshd runs. A sandbox has one of its own; without one it must be the machine's.
Result<void> prepare_for_sshd() {
  if (::geteuid() != 0 || ::mkdir("/run/sshd", 0755) == 0 || errno == EEXIST) return {};
  return base::system_error("cannot make /run/sshd, which sshd needs", errno);
}

Result<void> write_files(const launch::TaskPlan& plan, const TaskFolder& folder) {
  MUSTER_CHECK(base::make_private_folder(folder.generated()));
  for (const std::string& name : plan.folders) {
    MUSTER_CHECK(base::make_private_folder(folder.generated() / name));
  }
  for (const launch::PlannedFile& file : plan.files) {
    MUSTER_CHECK(base::write_new_file(folder.generated() / file.path, file.content, file.mode));
  }
  MUSTER_CHECK(base::write_new_file(folder.log(), ""));
  MUSTER_CHECK(base::write_new_file(folder.hosts(), hosts_file(plan.hosts), 0644));
  if (plan.ssh) MUSTER_CHECK(write_account_files(folder));
  return {};
}

TaskLimits limits_of(const launch::TaskPlan& plan, const TaskFolder& folder,
                     const ProcessEngineOptions& options) {
  TaskLimits limits = options.limits;
  if (!options.holds_claims) return limits;
  limits.memory_bytes = plan.resources.memory_bytes;
  limits.scratch = {folder.generated().string()};
  const fs::path attempt = folder.path.parent_path();
  const std::string name = attempt.parent_path().filename().string() + "-" +
                           attempt.filename().string() + "-" + folder.path.filename().string();
  limits.groups = groups_of(options.group_places, name, limits, plan.resources.cpu_milli);
  return limits;
}

Confinement confinement_of(const ProcessEngineOptions& options) {
  if (options.team) return Confinement::kMachine;
  return options.filter.empty() ? Confinement::kNone : Confinement::kRights;
}

/// All but the sandbox.
ShimPlan shim_plan_of(const launch::TaskPlan& plan, const TaskFolder& folder,
                      const ProcessEngineOptions& options) {
  const bool sandboxed = plan.sandbox == job::Sandbox::kBubblewrap;
  ShimPlan shim{.inner = {.argv = plan.argv,
                          .folder = plan.folder,
                          .own_process_tree = sandboxed,
                          .input = plan.input,
                          .terminal = plan.terminal,
                          .generated = sandboxed ? "/generated" : folder.generated().string(),
                          .mpi = plan.mpi,
                          .takes_ranks = plan.takes_ranks},
                .address = plan.address,
                .serves = plan.serves,
                .grace = plan.grace,
                .tags_ranks = plan.tags_ranks,
                .prepends_rank = plan.prepends_rank,
                .log_quota = options.log_quota,
                .is_leashed = options.tasks_end_with_it,
                .sampling = {.first = options.first_sample,
                             .interval = options.sample_interval,
                             .nvml = options.nvml,
                             .gpus = plan.gpus}};
  auto environment = plan.environment;
  if (sandboxed && options.team) environment["HOME"] = home_of_tasks(*options.team);
  for (const auto& [name, value] : environment) {
    shim.inner.environment.emplace_back(name).append("=").append(value);
  }
  shim.inner.limits = limits_of(plan, folder, options);
  if (sandboxed) shim.inner.filter = options.filter;
  if (plan.own_rank_output) shim.inner.rank_output_folder = shim.inner.generated;
  if (plan.ssh) {
    if (!plan.ssh->bind.empty()) shim.address = plan.ssh->bind;
    shim.port = plan.ssh->port;
    shim.inner.ssh_command = plan.ssh->command;
  }
  return shim;
}

}  // namespace

Result<void> lay_out_task(const launch::TaskPlan& plan, const TaskFolder& folder,
                          const VolumeFolders& volumes, const ProcessEngineOptions& options) {
  MUSTER_CHECK(write_files(plan, folder));
  if (options.way_out) {
    const Resolver resolver = resolver_for_jobs(options.way_out->nameservers);
    MUSTER_CHECK(base::write_new_file(folder.resolver(), resolver.text, 0644));
  }
  ShimPlan shim = shim_plan_of(plan, folder, options);
  if (plan.sandbox == job::Sandbox::kBubblewrap) {
    MUSTER_TRY(std::vector<Mount> mounts, find_volumes(plan, volumes));
    if (options.team) {
      MUSTER_TRY(const auto more,
                 mounts_in_private_places(
                     *options.team, options.team->homes_of_projects ? plan.project : plan.owner,
                     options.shim.parent_path()));
      mounts.insert(mounts.end(), more.begin(), more.end());
    }
    // A server for one user hides nothing but what would only be in their own way.
    const bool shared = !options.hidden.empty();
    MUSTER_TRY(shim.wrapper, sandbox_command(plan, folder, mounts, volumes.hidden, shared,
                                             volumes.secret, confinement_of(options)));
  } else if (plan.ssh) {
    MUSTER_CHECK(prepare_for_sshd());
  }
  const TaskLimits& limits = shim.inner.limits;
  const bool fills_memory = limits.memory_bytes > 0 && !limits.has_group("memory");
  // Files there lie in memory that is no process's.
  const int64_t most = limits.scratch_bytes > 0 ? limits.scratch_bytes
                       : fills_memory           ? limits.memory_bytes
                                                : 0;
  if (most > 0) limit_temporary_places(most, shim.wrapper);
  if (!shim.inner.filter.empty()) {
    append_words(shim.wrapper, {"--seccomp", std::to_string(kInnerFilter)});
  }
  shim.wrapper.insert(shim.wrapper.end(), {options.shim.string(), "--inner"});
  return base::write_new_file(folder.plan(), encode(shim));
}

}  // namespace muster::engine
