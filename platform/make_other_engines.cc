#include "make_other_engines.h"

#include <utility>

#include "base/subprocess.h"
#include "config/paths.h"
#include "engine/container/container_engine.h"
#include "engine/container/options.h"
#include "engine/doctor/doctor.h"
#include "engine/host_facts.h"
#include "engine/kubernetes/kubernetes_engine.h"
#include "engine/process/task_filter.h"
#include "engine/slurm/slurm_engine.h"
#include "make_engine.h"

namespace muster {

using base::Result;
using config::ServeOptions;

namespace {

engine::node::Sharing sharing_of(config::NodeSharing setting) {
  switch (setting) {
    case config::NodeSharing::kAuto:
      return engine::node::Sharing::kAuto;
    case config::NodeSharing::kYes:
      return engine::node::Sharing::kYes;
    case config::NodeSharing::kNo:
      return engine::node::Sharing::kNo;
  }
  return {};
}

/// The hosts that containers run on.
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

engine::kubernetes::PodQueue pod_queue_of(config::PodQueue setting) {
  using engine::kubernetes::PodQueue;
  switch (setting) {
    case config::PodQueue::kMuster:
      return PodQueue::kMuster;
    case config::PodQueue::kDefault:
      return PodQueue::kDefault;
    case config::PodQueue::kKueue:
      return PodQueue::kKueue;
  }
  return {};
}

/// How Slurm is asked and where nodes call back; nothing of the folder of the jobs.
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

/// How the cluster of Kubernetes is reached, and its pods are made; nothing of the folder of the jobs.
///
/// kInvalid: options that contradict each other.
Result<engine::kubernetes::KubernetesOptions> kubernetes_options(const ServeOptions& options) {
  engine::kubernetes::KubernetesOptions how;
  how.version = MUSTER_VERSION;
  how.access.environment = base::current_environment();
  if (options.kubernetes_kubeconfig) how.access.kubeconfig = {*options.kubernetes_kubeconfig};
  how.access.context = options.kubernetes_context;
  how.pods.space = options.kubernetes_namespace;
  how.pods.cluster_domain = options.kubernetes_cluster_domain;
  how.pods.node_image = options.kubernetes_node_image;
  if (options.kubernetes_programs == config::PodPrograms::kVolume) {
    how.pods.programs = engine::kubernetes::ProgramsBy::kImageVolume;
  } else if (options.kubernetes_programs == config::PodPrograms::kCopy) {
    how.pods.programs = engine::kubernetes::ProgramsBy::kInitContainer;
  }
  how.pods.storage_claim = options.kubernetes_storage_claim;
  how.pods.artifacts_class = options.kubernetes_artifacts_class;
  how.pods.artifacts_bytes = options.kubernetes_artifacts_bytes;
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
  if (options.kubernetes_connect != config::PodConnection::kForward) {
    how.callback_hosts = options.kubernetes_callback.hosts;
    how.callback_port = options.kubernetes_callback.port;
  }
  const bool lacks_queue = how.pods.queue == engine::kubernetes::PodQueue::kKueue &&
                           options.kubernetes_local_queue.empty();
  if (lacks_queue) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "kubernetes.queue is kueue, but kubernetes.local_queue is not set",
                       .advice =
                           "set kubernetes.local_queue to a LocalQueue of the namespace, as in "
                           "training or {project}"};
  }
  if (options.kubernetes_connect == config::PodConnection::kCall && how.callback_hosts.empty()) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "kubernetes.connect is call, but kubernetes.callback is not set",
                       .advice =
                           "set kubernetes.callback to this server's address for pods, as in "
                           "muster.training.svc:7445"};
  }
  return how;
}

}  // namespace

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

job::Diagnosis examine_container_engine(const cli::DoctorInput& input) {
  return engine::doctor::diagnose(engine::doctor::look_at_containers(container_hosts(input.options),
                                                                     shim_path().parent_path()));
}

job::Diagnosis examine_slurm_engine(const cli::DoctorInput& input) {
  return engine::doctor::diagnose(
      engine::doctor::look_at_slurm({.options = slurm_options(input.options),
                                     .environment = base::current_environment(),
                                     .jobs_folder = input.jobs_folder,
                                     .server_runs = input.server_runs}));
}

job::Diagnosis examine_kubernetes_engine(const cli::DoctorInput& input) {
  return engine::doctor::diagnose(
      engine::doctor::look_at_kubernetes(kubernetes_options(input.options)));
}

}  // namespace muster
