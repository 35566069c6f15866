#include "make_engine.h"

#include <algorithm>
#include <utility>

#include "base/subprocess.h"
#include "config/paths.h"
#include "engine/doctor/doctor.h"
#include "engine/host_facts.h"
#include "engine/process/machine.h"
#include "engine/process/process_engine.h"
#include "engine/process/task_filter.h"
#include "store/postgres_store.h"
#include "workspace/tree_store.h"

namespace muster {

using base::Result;
using config::Paths;
using config::ServeOptions;
using config::TaskAccounts;
using config::TaskCpu;
using config::TaskDevices;
using config::TaskHomes;
using config::TaskNetwork;

namespace {

/// On this machine, the processes of a fork bomb compete for the CPUs with each other, and hold locks
/// of the kernel while they wait for their turn; without a control group for CPU time, they compete
/// with all other processes, too.
int processes_in_team(const ServeOptions& options) {
  constexpr int kMost = 4096;
  constexpr int kForEachCpu = 512;
  constexpr int kForEachSharedCpu = 128;
  if (options.engine != "process") return kMost;
  const auto places = engine::group_places();
  const bool divides_cpus = std::any_of(places.begin(), places.end(), [](const auto& place) {
    return place.controllers.contains("cpu");
  });
  const int cpus = std::max(1, static_cast<int>(engine::this_machine().cpus.size()));
  return std::min(kMost, (divides_cpus ? kForEachCpu : kForEachSharedCpu) * cpus);
}

std::vector<engine::GroupPlace> group_places(const ServeOptions& options) {
  std::vector<engine::GroupPlace> places = engine::group_places();
  for (engine::GroupPlace& place : places) {
    if (options.task_cpu == TaskCpu::kNone) place.controllers.erase("cpu");
    if (options.task_cpu != TaskCpu::kBind) place.controllers.erase("cpuset");
  }
  std::erase_if(places, [](const auto& place) { return place.controllers.empty(); });
  return places;
}

/// The ids of its users, for a server that listens. If it cannot have any, jobs run under its own
/// account, unless the configuration insists.
Result<std::optional<engine::AccountSource>> find_accounts(const std::filesystem::path& jobs_folder,
                                                           const ServeOptions& options) {
  auto source = account_source(options);
  if (source) {
    source->book = config::id_book(jobs_folder);
    source->are_of_projects = options.task_homes == TaskHomes::kOfProject;
    return std::optional(*std::move(source));
  }
  const bool insists = options.task_accounts == TaskAccounts::kOwn ||
                       (options.task_subids && options.task_accounts != TaskAccounts::kShared &&
                        source.error().code == base::ErrorCode::kInvalid);
  if (insists) return std::move(source).error();
  return std::optional<engine::AccountSource>();
}

}  // namespace

Result<std::vector<std::filesystem::path>> hidden_from_jobs(
    const std::filesystem::path& jobs_folder, const ServeOptions& options) {
  if (options.listen.empty()) return std::vector<std::filesystem::path>();
  MUSTER_TRY(const Paths paths, config::paths_here(options.state_folder));
  std::vector<std::filesystem::path> hidden{paths.socket.parent_path(), paths.state_folder,
                                            jobs_folder};
  for (const auto& file : {options.secret_key_file, options.tls_key, options.store_password_file}) {
    if (file) hidden.push_back(*file);
  }
  if (!options.store.empty() && !store::is_postgres_url(options.store)) {
    for (const char* ending : {"", "-wal", "-shm"}) hidden.emplace_back(options.store + ending);
  }
  return hidden;
}

UnpackTree tree_unpacker(const std::filesystem::path& jobs_folder) {
  return [trees = workspace::TreeStore(config::trees_folder(jobs_folder))](
             const std::string& project, const std::string& tree,
             const std::filesystem::path& folder) { return trees.unpack(project, tree, folder); };
}

engine::TaskLimits task_limits(const ServeOptions& options) {
  const int usual = options.listen.empty() ? 0 : processes_in_team(options);
  return {.processes = options.task_processes.value_or(usual),
          .open_files = options.task_open_files,
          .file_bytes = options.task_file_bytes,
          .scratch_bytes = options.task_scratch_bytes,
          .scratch = {},
          .groups = {}};
}

Result<std::unique_ptr<engine::Engine>> make_process_engine(
    base::EventLoop& loop, const std::filesystem::path& jobs_folder, const ServeOptions& options) {
  engine::ProcessEngineOptions how{.folder = jobs_folder,
                                   .shim = shim_path(),
                                   .task_slots = options.task_slots,
                                   .node_pool = options.node_pool,
                                   .topology = options.topology};
  how.log_quota = static_cast<uint64_t>(options.log_quota);
  MUSTER_TRY(how.hidden, hidden_from_jobs(jobs_folder, options));
  how.storage_folder = options.storage_folder.value_or(config::storage_folder(jobs_folder));
  if (!options.listen.empty()) {
    how.team = {.homes = config::homes_folder(jobs_folder), .account_home = engine::account_home()};
    how.team->shared.assign(options.shared_folders.begin(), options.shared_folders.end());
    how.team->homes_of_projects = options.task_homes == TaskHomes::kOfProject;
    if (how.team->homes_of_projects) how.team->homes = config::project_homes_folder(jobs_folder);
    MUSTER_TRY(how.accounts, find_accounts(jobs_folder, options));
    MUSTER_TRY(how.filter,
               engine::filter_program({.user_namespaces = options.task_user_namespaces}));
  }
  how.own_networks = !options.listen.empty() && options.task_network == TaskNetwork::kOwn;
  if (how.own_networks && options.task_internet) {
    MUSTER_TRY(how.egress, egress_options(options, jobs_folder));
  }
  how.holds_claims = true;
  how.limits = task_limits(options);
  how.group_places = group_places(options);
  if (options.task_cpu == TaskCpu::kBind) how.cpus = engine::this_machine().cpus;
  how.own_devices = !options.listen.empty() && options.task_devices == TaskDevices::kOwn;
  how.unpack_tree = tree_unpacker(jobs_folder);
  if (!options.declared_gpus.empty()) {
    MUSTER_TRY(how.declared_gpus, engine::parse_declared_gpus(options.declared_gpus));
  }
  return std::make_unique<engine::ProcessEngine>(loop, std::move(how));
}

job::Diagnosis examine_process_engine(const cli::DoctorInput& input) {
  std::optional<Result<engine::EgressOptions>> egress;
  if (input.options.task_internet) egress = egress_options(input.options, input.jobs_folder);
  return engine::doctor::diagnose(engine::doctor::look_at_process(
      {.environment = base::current_environment(),
       .programs = shim_path().parent_path(),
       .declared_gpus = input.options.declared_gpus,
       .is_team = !input.options.listen.empty(),
       .shares_network = input.options.task_network == TaskNetwork::kShared,
       .trusts_projects = input.options.trust_each_other,
       .egress = std::move(egress),
       .accounts = account_source(input.options)}));
}

Result<engine::EgressOptions> egress_options(const ServeOptions& options,
                                             const std::filesystem::path& jobs_folder) {
  engine::EgressOptions how{.jobs_folder = jobs_folder.string(),
                            .nameservers = options.task_nameservers};
  MUSTER_TRY(how.range, engine::read_network(options.task_internet_range));
  for (const std::string& text : options.task_internet_refused) {
    MUSTER_TRY(const engine::Network4 network, engine::read_network(text));
    how.refused.push_back(network);
  }
  for (const std::string& text : options.task_nameservers) {
    MUSTER_CHECK(engine::read_address(text));
  }
  return how;
}

std::filesystem::path programs_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

std::filesystem::path shim_path() {
  const std::filesystem::path folder = programs_folder();
  const std::filesystem::path installed = folder.parent_path() / "libexec/muster/muster-shim";
  return std::filesystem::exists(installed) ? installed : folder / "muster-shim";
}

/// Muster's own remote shell; empty: it was left out.
std::string remote_shell_path() {
  const std::filesystem::path path = shim_path().parent_path() / "muster-rsh";
  return std::filesystem::exists(path) ? path.string() : "";
}

Result<engine::AccountSource> account_source(const ServeOptions& options) {
  if (options.listen.empty() || options.engine != "process") {
    return base::Error{.code = base::ErrorCode::kUnavailable,
                       .what = "this server has one user, or another engine"};
  }
  std::optional<engine::IdSpan> subids;
  if (options.task_subids) {
    subids = {.first = options.task_subids->first, .count = options.task_subids->count};
  }
  MUSTER_TRY(engine::AccountSource source,
             engine::source_of(engine::account_facts(options.task_accounts == TaskAccounts::kShared,
                                                     subids, base::current_environment())));
  if (source.space) {
    MUSTER_CHECK(engine::run_in_id_space(shim_path().string(), *source.space, {"--nothing"}));
  }
  return source;
}

}  // namespace muster
