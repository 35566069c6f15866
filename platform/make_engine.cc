#include "make_engine.h"

#include <algorithm>
#include <utility>

#include "config/paths.h"
#include "engine/container/container_engine.h"
#include "engine/container/options.h"
#include "engine/host_facts.h"
#include "engine/kubernetes/kubernetes_engine.h"
#include "engine/process/machine.h"
#include "engine/process/process_engine.h"
#include "engine/process/task_filter.h"
#include "engine/slurm/slurm_engine.h"
#include "store/postgres_store.h"
#include "workspace/tree_store.h"

namespace muster {

using base::Result;
using config::Paths;
using config::ServeOptions;

namespace {

/// What the jobs of a server that is shared must not get at: with the unix socket, the key or the
/// database they could do all that the server can. Who has a server alone could do that anyway, and
/// their jobs may well submit others.
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

auto tree_unpacker(const std::filesystem::path& jobs_folder) {
  return [trees = workspace::TreeStore(config::trees_folder(jobs_folder))](
             const std::string& project, const std::string& tree,
             const std::filesystem::path& folder) { return trees.unpack(project, tree, folder); };
}

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

engine::TaskLimits task_limits(const ServeOptions& options) {
  const int usual = options.listen.empty() ? 0 : processes_in_team(options);
  return {.processes = options.task_processes.value_or(usual),
          .open_files = options.task_open_files,
          .file_bytes = options.task_file_bytes,
          .scratch_bytes = options.task_scratch_bytes,
          .scratch = {},
          .groups = {}};
}

Result<std::unique_ptr<engine::Engine>> make_container_engine(
    base::EventLoop& loop, const std::filesystem::path& jobs_folder, const ServeOptions& options) {
  engine::ContainerEngineOptions how{.folder = jobs_folder,
                                     .programs = shim_path().parent_path(),
                                     .log_quota = static_cast<uint64_t>(options.log_quota),
                                     .unpack_tree = tree_unpacker(jobs_folder)};
  how.limits = task_limits(options);
  MUSTER_TRY(how.hosts, container_hosts(options));
  MUSTER_TRY(how.owner, engine::owner_of(jobs_folder));
  MUSTER_TRY(how.hidden, hidden_from_jobs(jobs_folder, options));
  if (!options.listen.empty()) {
    MUSTER_TRY(how.filter,
               engine::filter_program({.user_namespaces = options.task_user_namespaces}));
  }
  if (!how.hidden.empty()) {
    for (auto& way : engine::ways_in(how.hosts)) how.hidden.push_back(std::move(way));
  }
  MUSTER_TRY(auto engine, engine::ContainerEngine::open(loop, std::move(how)));
  return std::unique_ptr<engine::Engine>(std::move(engine));
}

engine::node::Sharing sharing_of(const std::string& word) {
  if (word == "yes") return engine::node::Sharing::kYes;
  return word == "no" ? engine::node::Sharing::kNo : engine::node::Sharing::kAuto;
}

Result<std::unique_ptr<engine::Engine>> make_slurm_engine(base::EventLoop& loop,
                                                          const std::filesystem::path& jobs_folder,
                                                          const ServeOptions& options) {
  engine::slurm::SlurmEngineOptions how = slurm_options(options);
  how.folder = jobs_folder;
  how.limits = task_limits(options);
  MUSTER_TRY(how.owner, engine::owner_of(jobs_folder));
  MUSTER_TRY(how.hidden, hidden_from_jobs(jobs_folder, options));
  if (!options.listen.empty()) {
    MUSTER_TRY(how.filter,
               engine::filter_program({.user_namespaces = options.task_user_namespaces}));
  }
  how.storage_folder = options.storage_folder.value_or(config::storage_folder(jobs_folder));
  how.unpack_tree = tree_unpacker(jobs_folder);
  MUSTER_TRY(auto engine, engine::SlurmEngine::open(loop, std::move(how)));
  return std::unique_ptr<engine::Engine>(std::move(engine));
}

Result<std::unique_ptr<engine::Engine>> make_kubernetes_engine(
    base::EventLoop& loop, const std::filesystem::path& jobs_folder, const ServeOptions& options) {
  MUSTER_TRY(engine::kubernetes::KubernetesOptions how, kubernetes_options(options));
  how.folder = jobs_folder;
  how.limits = task_limits(options);
  MUSTER_TRY(how.pods.owner, engine::owner_of(jobs_folder));
  how.unpack_tree = tree_unpacker(jobs_folder);
  MUSTER_TRY(auto engine, engine::KubernetesEngine::open(loop, std::move(how)));
  return std::unique_ptr<engine::Engine>(std::move(engine));
}

std::vector<engine::GroupPlace> group_places(const ServeOptions& options) {
  std::vector<engine::GroupPlace> places = engine::group_places();
  for (engine::GroupPlace& place : places) {
    if (options.task_cpu == "none") place.controllers.erase("cpu");
    if (options.task_cpu != "bind") place.controllers.erase("cpuset");
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
    source->are_of_projects = options.task_homes == "project";
    return std::optional(*std::move(source));
  }
  const bool insists =
      options.task_accounts == "own" || (options.task_subids && options.task_accounts != "shared" &&
                                         source.error().code == base::ErrorCode::kInvalid);
  if (insists) return std::move(source).error();
  return std::optional<engine::AccountSource>();
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
    how.team->homes_of_projects = options.task_homes == "project";
    if (how.team->homes_of_projects) how.team->homes = config::project_homes_folder(jobs_folder);
    MUSTER_TRY(how.accounts, find_accounts(jobs_folder, options));
    MUSTER_TRY(how.filter,
               engine::filter_program({.user_namespaces = options.task_user_namespaces}));
  }
  how.own_networks = !options.listen.empty() && options.task_network == "own";
  if (how.own_networks && options.task_internet) {
    MUSTER_TRY(how.way_out, way_out_options(options, jobs_folder));
  }
  how.holds_claims = true;
  how.limits = task_limits(options);
  how.group_places = group_places(options);
  if (options.task_cpu == "bind") how.cpus = engine::this_machine().cpus;
  how.own_devices = !options.listen.empty() && options.task_devices == "own";
  how.unpack_tree = tree_unpacker(jobs_folder);
  if (!options.declared_gpus.empty()) {
    MUSTER_TRY(how.declared_gpus, engine::parse_declared_gpus(options.declared_gpus));
  }
  return std::make_unique<engine::ProcessEngine>(loop, std::move(how));
}

}  // namespace

Result<engine::WayOutOptions> way_out_options(const ServeOptions& options,
                                              const std::filesystem::path& jobs_folder) {
  engine::WayOutOptions how{.jobs_folder = jobs_folder.string(),
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
             engine::source_of(engine::account_facts(options.task_accounts, subids,
                                                     base::current_environment())));
  if (source.space) {
    MUSTER_CHECK(engine::run_in_id_space(shim_path().string(), *source.space, {"--nothing"}));
  }
  return source;
}

Result<std::vector<engine::ContainerHostOptions>> container_hosts(const ServeOptions& options) {
  engine::Surroundings here = engine::surroundings_here();
  if (options.docker_cert_path) {
    here.variable = [variable = here.variable,
                     folder = options.docker_cert_path->string()](const std::string& name) {
      return name == "DOCKER_CERT_PATH" ? folder : variable(name);
    };
  }
  const engine::HostTexts texts{
      .endpoints = options.container_hosts,
      .addresses = options.host_addresses,
      .gpus = options.host_gpus,
      .certificates = options.docker_cert_path.value_or(std::filesystem::path()),
      .own_name = engine::host_name(),
      .own_gpus = options.declared_gpus};
  MUSTER_TRY(auto hosts, engine::read_hosts(texts, here));
  for (engine::ContainerHostOptions& host : hosts) {
    host.pool = options.node_pool;
    host.task_slots = options.task_slots;
    host.topology = options.topology;
  }
  return hosts;
}

engine::kubernetes::PodQueue pod_queue_of(const std::string& word) {
  using engine::kubernetes::PodQueue;
  if (word == "kueue") return PodQueue::kKueue;
  return word == "default" ? PodQueue::kDefault : PodQueue::kMuster;
}

engine::slurm::SlurmEngineOptions slurm_options(const ServeOptions& options) {
  return {.programs = shim_path().parent_path(),
          .programs_on_nodes = options.slurm_programs,
          .version = MUSTER_VERSION,
          .rest = options.slurm_rest,
          .rest_user = options.slurm_rest_user,
          .token_command = options.slurm_token_command,
          .callback_bind = options.slurm_callback_bind,
          .callback_port = options.slurm_callback.port,
          .callback_hosts = options.slurm_callback.hosts,
          .sharing = sharing_of(options.slurm_shared),
          .node_folder = options.slurm_node_folder,
          .tasks_per_node = options.slurm_tasks_per_node,
          .accounts = options.slurm_accounts,
          .default_account = options.slurm_default_account,
          .qos = options.slurm_qos,
          .sbatch_options = options.slurm_options,
          .log_quota = static_cast<uint64_t>(options.log_quota)};
}

Result<engine::kubernetes::KubernetesOptions> kubernetes_options(const ServeOptions& options) {
  engine::kubernetes::KubernetesOptions how;
  how.version = MUSTER_VERSION;
  how.access.environment = base::current_environment();
  if (options.kubernetes_kubeconfig) how.access.kubeconfig = {*options.kubernetes_kubeconfig};
  how.access.context = options.kubernetes_context;
  how.pods.space = options.kubernetes_namespace;
  how.pods.cluster_domain = options.kubernetes_cluster_domain;
  how.pods.node_image = options.kubernetes_node_image;
  how.pods.storage_claim = options.kubernetes_storage_claim;
  how.pods.queue = pod_queue_of(options.kubernetes_queue);
  how.pods.local_queue = options.kubernetes_local_queue;
  how.pods.priority_class = options.kubernetes_priority_class;
  how.pods.runtime_class = options.kubernetes_runtime_class;
  how.pods.image_pull_secrets = options.kubernetes_pull_secrets;
  how.pods.tolerations = options.kubernetes_tolerations;
  for (const auto& [model, resource] : options.kubernetes_gpu_resources) {
    how.pods.gpu_resources[model] = resource;
  }
  MUSTER_TRY(const auto account,
             engine::kubernetes::pod_account(options.kubernetes_user, how.pods));
  how.pods.uid = account.uid;
  how.pods.gid = account.gid;
  how.nodes.pool_label = options.kubernetes_pool_label;
  if (!options.kubernetes_topology.empty()) how.nodes.topology = options.kubernetes_topology;
  how.pod_timeout = options.kubernetes_pod_timeout;
  how.log_quota = static_cast<uint64_t>(options.log_quota);
  if (options.kubernetes_connect != "forward") {
    how.callback_hosts = options.kubernetes_callback.hosts;
    how.callback_port = options.kubernetes_callback.port;
  }
  const bool lacks_queue = how.pods.queue == engine::kubernetes::PodQueue::kKueue &&
                           options.kubernetes_local_queue.empty();
  if (lacks_queue) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "kubernetes.queue is kueue, and no LocalQueue is named",
                       .advice =
                           "set kubernetes.local_queue to a LocalQueue of the namespace, as in "
                           "training or {project}"};
  }
  if (options.kubernetes_connect == "call" && how.callback_hosts.empty()) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "kubernetes.connect is call, and pods do not know where to call",
                       .advice =
                           "set kubernetes.callback to this server's address for pods, as in "
                           "muster.training.svc:7445"};
  }
  return how;
}

Result<std::unique_ptr<engine::Engine>> make_engine(base::EventLoop& loop,
                                                    const std::filesystem::path& jobs_folder,
                                                    const ServeOptions& options) {
  if (options.engine == "container") return make_container_engine(loop, jobs_folder, options);
  if (options.engine == "slurm") return make_slurm_engine(loop, jobs_folder, options);
  if (options.engine == "kubernetes") return make_kubernetes_engine(loop, jobs_folder, options);
  return make_process_engine(loop, jobs_folder, options);
}

}  // namespace muster
