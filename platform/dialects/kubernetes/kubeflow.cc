// The jobs of Kubeflow's operators: MPIJob, PyTorchJob and TFJob. Each has a run policy, and a pod
// template for each kind of replicas.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "dialects/kubernetes/kinds.h"

namespace muster::dialects::kubernetes {

void use_time_limit(const std::optional<Node>& seconds, Draft& draft) {
  if (!seconds) return;
  draft.origins["scheduling.time_limit"] = seconds->place();
  if (const auto number = seconds->integer(1, kMostSeconds)) {
    draft.spec.scheduling.time_limit = std::chrono::seconds(*number);
  }
}

void use_keep_for(const std::optional<Node>& seconds, Draft& draft) {
  if (!seconds) return;
  draft.origins["keep_for"] = seconds->place();
  if (const auto number = seconds->integer(0, kMostSeconds)) {
    draft.spec.keep_for = std::chrono::seconds(*number);
  }
}

void use_retries(const std::optional<Node>& limit, int usual, Draft& draft) {
  draft.spec.scheduling.retries = usual;
  if (!limit) return;
  draft.origins["scheduling.retries"] = limit->place();
  if (const auto number = limit->integer(0, kMostSeconds)) {
    draft.spec.scheduling.retries = static_cast<int>(std::min<int64_t>(*number, kUnlimitedRetries));
  }
}

void check_manager(const std::optional<Node>& manager, const std::string& own) {
  const auto name = manager ? manager->text() : std::nullopt;
  if (!name || name->empty() || *name == own) return;
  manager->fault("'" + *name + "' would run the job in another cluster; remove it");
}

void fail_on_permanent_errors(Draft& draft) {
  constexpr int kLastPermanent = 127;
  draft.spec.scheduling.retry_rules.push_back(
      {.exit_code = 1, .last_exit_code = kLastPermanent, .action = job::RetryRule::Action::kFail});
}

namespace {

constexpr int64_t kMostReplicas = 1001;

/// The pods of one kind of replicas.
struct Replicas {
  Pod pod;
  int count = 1;
  std::string restart_policy;
  Place place;        ///< of the replica spec
  Place count_place;  ///< of its number, or of the replica spec
};

/// The settings of a run policy for the scheduling of a gang.
struct RunPolicy {
  std::optional<Node> backoff_limit;
  std::optional<Node> min_available;
};

void read_scheduling_policy(const Node& node, const TranslationOptions& options, RunPolicy& policy,
                            Draft& draft) {
  Map map(node);
  policy.min_available = map.take("minAvailable");
  if (const auto queue = map.take("queue")) {
    use_queue(queue->text().value_or(""), queue->place(), draft, node.findings());
  }
  if (const auto priority = map.take("priorityClass")) {
    use_priority_class(priority->text().value_or(""), priority->place(), options, draft,
                       node.findings());
  }
  map.warn("scheduleTimeoutSeconds", "has no effect: the job waits in the queue of its project");
  map.skip({"minResources"});  // the sum of what the pods claim
  map.end();
}

RunPolicy read_run_policy(const std::optional<Node>& node, const std::string& own_manager,
                          const TranslationOptions& options, Draft& draft) {
  RunPolicy policy;
  if (!node) return policy;
  Map map(*node);
  // All tasks of a job of Muster end with it, and their logs remain.
  if (const auto clean = map.take("cleanPodPolicy")) clean->word({"All", "Running", "None", ""});
  use_keep_for(map.take("ttlSecondsAfterFinished"), draft);
  use_time_limit(map.take("activeDeadlineSeconds"), draft);
  policy.backoff_limit = map.take("backoffLimit");
  if (const auto suspend = map.flag("suspend")) draft.spec.held = *suspend;
  check_manager(map.take("managedBy"), own_manager);
  if (const auto scheduling = map.take("schedulingPolicy")) {
    read_scheduling_policy(*scheduling, options, policy, draft);
  }
  map.end();
  return policy;
}

Replicas read_replicas(const Node& node, const PodContext& context, int usual_count) {
  Replicas replicas{.pod = {},
                    .count = usual_count,
                    .restart_policy = "",
                    .place = node.place(),
                    .count_place = node.place()};
  Map map(node);
  if (const auto count = map.take("replicas")) {
    replicas.count_place = count->place();
    replicas.count = static_cast<int>(count->integer(0, kMostReplicas).value_or(usual_count));
  }
  if (const auto policy = map.take("restartPolicy")) {
    replicas.restart_policy =
        policy->word({"Always", "OnFailure", "Never", "ExitCode"}).value_or("");
  }
  if (const auto pod = map.require("template")) replicas.pod = read_pod_template(*pod, context);
  map.end();
  return replicas;
}

/// The replica specs of a job, by their kind. `kinds`: the known ones; the case of letters does not
/// matter.
std::map<std::string, Replicas> read_replica_specs(const std::optional<Node>& node,
                                                   const std::vector<std::string>& kinds,
                                                   const PodContext& context) {
  std::map<std::string, Replicas> all;
  if (!node) return all;
  Map map(*node);
  for (const std::string& key : map.keys()) {
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const std::string& one) {
      return base::same_but_for_case(one, key);
    });
    const auto inner = map.take(key);
    if (!inner) continue;
    if (kind == kinds.end()) {
      inner->fault("is an unknown kind of replicas; the kinds are " + base::listed(kinds));
      continue;
    }
    all.emplace(*kind, read_replicas(*inner, context, 1));
  }
  return all;
}

const Replicas* find(const std::map<std::string, Replicas>& all, const std::string& kind) {
  const auto found = all.find(kind);
  return found == all.end() || found->second.count == 0 ? nullptr : &found->second;
}

void require_one(const Replicas* replicas, Findings& findings) {
  if (replicas == nullptr || replicas->count == 1) return;
  findings.faults.push_back(
      {.field = replicas->place.path + ".replicas",
       .what = "is " + std::to_string(replicas->count) + "; a job has one of these",
       .line = replicas->count_place.line});
}

void add_fault_at(const Place& place, std::string what, Findings& findings) {
  findings.faults.push_back({.field = place.path, .what = std::move(what), .line = place.line});
}

/// Elastic: the job starts with fewer members. `fixed`: members that are not workers.
void use_min_available(const RunPolicy& policy, int fixed, Draft& draft) {
  if (!policy.min_available) return;
  const auto least = policy.min_available->integer(1, kMostReplicas);
  if (!least) return;
  const int workers = std::max(static_cast<int>(*least) - fixed, 0);
  if (workers >= draft.spec.workers) return;
  draft.spec.scheduling.min_workers =
      draft.spec.kind == job::Kind::kMpi ? std::max(workers, 1) : workers;
  draft.origins["scheduling.min_workers"] = policy.min_available->place();
}

/// The restarts of jobs whose pods restart by their own policy. `usual`: the kind's default policy.
void use_restart_policies(const std::map<std::string, Replicas>& all, const RunPolicy& policy,
                          const std::string& usual, Draft& draft) {
  bool restarts = false;
  bool by_exit_code = false;
  for (const auto& [kind, replicas] : all) {
    const std::string& own = replicas.restart_policy.empty() ? usual : replicas.restart_policy;
    restarts = restarts || own != "Never";
    by_exit_code = by_exit_code || own == "ExitCode";
  }
  if (restarts) {
    use_retries(policy.backoff_limit, kUnlimitedRetries, draft);
  } else if (policy.backoff_limit) {
    policy.backoff_limit->integer(0, kMostSeconds);
  }
  if (by_exit_code) fail_on_permanent_errors(draft);
}

}  // namespace

// --- MPIJob

namespace {

void require_workers(const std::map<std::string, Replicas>& all, const Node& specs) {
  const auto workers = all.find("Worker");
  if (workers == all.end()) return specs.fault("has no Worker; an mpi job needs one");
  if (workers->second.count > 0) return;
  add_fault_at(workers->second.count_place, "must be at least 1", specs.findings());
}

void name_workers(const std::map<std::string, Replicas>& all, Draft& draft) {
  const auto workers = all.find("Worker");
  if (workers != all.end()) draft.origins["workers"] = workers->second.count_place;
}

}  // namespace

Draft read_mpi_job(Map& document, const Surroundings& surroundings,
                   const TranslationOptions& options) {
  const Metadata metadata = read_metadata(document, options);
  Draft draft = begin_draft(metadata, options, document.node());
  Findings& findings = document.node().findings();
  draft.spec.kind = job::Kind::kMpi;
  const auto spec_node = document.require("spec");
  if (!spec_node) return draft;
  Map spec(*spec_node);
  if (const auto slots = spec.take("slotsPerWorker")) {
    draft.origins["slots_per_worker"] = slots->place();
    draft.spec.slots_per_worker = static_cast<int>(slots->integer(1, 1024).value_or(1));
  }
  const bool launcher_works = spec.flag("runLauncherAsWorker").value_or(false);
  if (launcher_works) draft.spec.leader_slots = draft.spec.slots_per_worker;
  const RunPolicy policy =
      read_run_policy(spec.take("runPolicy"), "kubeflow.org/mpi-operator", options, draft);
  // Muster recognises the MPI of the image, has keys of its own, and waits for the workers.
  if (const auto mpi = spec.take("mpiImplementation")) mpi->word({"OpenMPI", "Intel", "MPICH"});
  if (const auto when = spec.take("launcherCreationPolicy")) {
    when->word({"AtStartup", "WaitForWorkersReady"});
  }
  spec.skip({"sshAuthMountPath", "cleanPodPolicy"});
  const PodContext context{.config_maps = surroundings.config_maps,
                           .on_kubernetes = options.on_kubernetes,
                           .container = spec.text("mainContainer").value_or("")};
  const auto specs = spec.require("mpiReplicaSpecs");
  const auto all = read_replica_specs(specs, {"Launcher", "Worker"}, context);
  spec.end();
  if (!specs) return draft;
  const auto launcher = all.find("Launcher");
  if (launcher == all.end()) specs->fault("has no Launcher");
  if (launcher != all.end()) require_one(&launcher->second, findings);
  require_workers(all, *specs);
  const Replicas* const workers = find(all, "Worker");
  if (launcher == all.end() || workers == nullptr) return draft;
  draft.spec.workers = workers->count;
  name_workers(all, draft);
  constexpr int kUsualRetries = 6;  // of the Job that holds the launcher
  use_retries(policy.backoff_limit, kUsualRetries, draft);
  use_min_available(policy, 1, draft);
  add_roles({.base = &workers->pod, .leader = &launcher->second.pod},
            {"OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"}, options,
            draft, findings);
  std::map<std::string, std::string> hosts{
      {metadata.file_name + "-launcher", draft.spec.name + "-launcher"}};
  for (int i = 0; i < draft.spec.workers; ++i) {
    const std::string number = std::to_string(i);
    hosts[metadata.file_name + "-worker-" + number] = draft.spec.name + "-worker-" + number;
  }
  replace_hosts(hosts, metadata, metadata.file_name, false, draft.spec);
  replace_everywhere("/etc/mpi/hostfile", "/generated/hostfile", draft.spec);
  replace_everywhere("/etc/mpi/discover_hosts.sh", "/generated/discover_hosts.sh", draft.spec);
  return draft;
}

// --- PyTorchJob

namespace {

const std::set<std::string>& torch_variables() {
  static const std::set<std::string> kAll{
      "MASTER_ADDR",      "MASTER_PORT",       "RANK",
      "WORLD_SIZE",       "PET_NNODES",        "PET_NPROC_PER_NODE",
      "PET_NODE_RANK",    "PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND",
      "PET_RDZV_ID",      "PET_MASTER_ADDR",   "PET_MASTER_PORT",
      "PET_MAX_RESTARTS", "LOCAL_RANK"};
  return kAll;
}

void use_processes(const Node& node, Draft& draft) {
  const auto text = node.text();
  if (!text) return;
  draft.origins["slots_per_worker"] = node.place();
  if (*text == "auto" || *text == "cpu" || *text == "gpu") {
    draft.spec.environment["PET_NPROC_PER_NODE"] = *text;
    return;
  }
  const auto number = base::number_of<int>(*text);
  if (!number || *number < 1) {
    return node.fault("'" + *text + "' is neither a number of processes nor auto, cpu or gpu");
  }
  draft.spec.slots_per_worker = *number;
}

/// The variables of torchrun that an elastic policy sets, and the numbers of workers.
class ElasticReading {
 public:
  ElasticReading(const Node& node, Draft& draft) : map_(node), draft_(draft) {}

  void read() {
    least_ = map_.take("minReplicas");
    most_ = map_.take("maxReplicas");
    if (const auto number = map_.integer("maxRestarts", 0, kMostSeconds)) {
      draft_.spec.environment["PET_MAX_RESTARTS"] = std::to_string(*number);
    }
    processes_ = map_.take("nProcPerNode");
    read_rendezvous();
    map_.warn("metrics", "has no effect: an elastic job has as many workers as there is room for");
    map_.end();
  }

  const std::optional<Node>& processes() const { return processes_; }

  /// `count`: the replicas of the file; `leads`: one of them is the master.
  void use_numbers(int count, bool leads) {
    const int least = number_of(least_, number_of(most_, count));
    const int most = number_of(most_, number_of(least_, count));
    if (least > most) {
      return map_.node().fault("has a minReplicas above its maxReplicas");
    }
    const int leader = leads ? 1 : 0;
    draft_.spec.workers = std::max(most - leader, 0);
    if (least < most) draft_.spec.scheduling.min_workers = std::max(least - leader, 0);
    draft_.origins["workers"] = (most_ ? *most_ : map_.node()).place();
    draft_.origins["scheduling.min_workers"] = (least_ ? *least_ : map_.node()).place();
  }

 private:
  static std::optional<int> read(const std::optional<Node>& node) {
    return node ? std::optional(static_cast<int>(node->integer(1, kMostReplicas).value_or(1)))
                : std::nullopt;
  }

  static int number_of(const std::optional<Node>& node, int otherwise) {
    return read(node).value_or(otherwise);
  }

  void read_rendezvous() {
    auto& variables = draft_.spec.environment;
    const auto backend = map_.take("rdzvBackend");
    const auto word = backend ? backend->word({"c10d", "etcd", "etcd-v2"}) : std::nullopt;
    const auto host = map_.text("rdzvHost");
    const auto port = map_.integer("rdzvPort", 1, 65535);
    if (word && *word != "c10d") {
      variables["PET_RDZV_BACKEND"] = *word;
      if (!host) backend->fault("'" + *word + "' needs a rdzvHost");
      if (host) {
        constexpr int64_t kEtcdPort = 2379;
        variables["PET_RDZV_ENDPOINT"] = *host + ":" + std::to_string(port.value_or(kEtcdPort));
      }
    }
    // With c10d, host and port are those of a worker: Muster's are those of the master.
    if (const auto id = map_.text("rdzvId")) variables["PET_RDZV_ID"] = *id;
    if (map_.flag("standalone").value_or(false)) variables["PET_STANDALONE"] = "1";
    if (const auto list = map_.take("rdzvConf")) read_conf(*list);
  }

  void read_conf(const Node& list) {
    std::vector<std::string> parts;
    for (const Node& element : list.elements()) {
      Map map(element);
      const std::string key = map.text("key").value_or("");
      const std::string value = map.text("value").value_or("");
      map.end();
      parts.push_back(key + "=" + value);
    }
    // Muster's own value names the task that holds the store.
    if (!parts.empty()) {
      list.warning("replaces Muster's settings of the rendezvous");
      draft_.spec.environment["PET_RDZV_CONF"] = base::joined(parts, ",");
    }
  }

  Map map_;
  Draft& draft_;
  std::optional<Node> least_;
  std::optional<Node> most_;
  std::optional<Node> processes_;
};

}  // namespace

Draft read_pytorch_job(Map& document, const Surroundings& surroundings,
                       const TranslationOptions& options) {
  const Metadata metadata = read_metadata(document, options);
  Draft draft = begin_draft(metadata, options, document.node());
  Findings& findings = document.node().findings();
  draft.spec.kind = job::Kind::kTorch;
  const auto spec_node = document.require("spec");
  if (!spec_node) return draft;
  Map spec(*spec_node);
  const RunPolicy policy =
      read_run_policy(spec.take("runPolicy"), "kubeflow.org/training-operator", options, draft);
  const auto elastic_node = spec.take("elasticPolicy");
  std::optional<ElasticReading> elastic;
  if (elastic_node) elastic.emplace(*elastic_node, draft);
  if (elastic) elastic->read();
  std::optional<Node> processes = spec.take("nprocPerNode");
  if (!processes && elastic) processes = elastic->processes();
  const PodContext context{.config_maps = surroundings.config_maps,
                           .on_kubernetes = options.on_kubernetes,
                           .container = "pytorch"};
  const auto specs = spec.require("pytorchReplicaSpecs");
  const auto all = read_replica_specs(specs, {"Master", "Worker"}, context);
  spec.end();
  if (!specs) return draft;
  const Replicas* const master = find(all, "Master");
  const Replicas* const workers = find(all, "Worker");
  require_one(master, findings);
  if (master == nullptr && workers == nullptr) {
    specs->fault("has no replicas; give a Master, Workers or both");
    return draft;
  }
  const int count = workers == nullptr ? 0 : workers->count;
  draft.spec.workers = master != nullptr ? count : count - 1;
  draft.origins["workers"] = (workers != nullptr ? *workers : *master).count_place;
  if (elastic && workers != nullptr) elastic->use_numbers(count, master == nullptr);
  use_restart_policies(all, policy, "OnFailure", draft);
  use_min_available(policy, 1, draft);
  const Pod& base = (workers != nullptr ? *workers : *master).pod;
  const Pod& leader = (master != nullptr ? *master : *workers).pod;
  add_roles({.base = &base, .leader = &leader}, torch_variables(), options, draft, findings);
  if (processes) {
    use_processes(*processes, draft);
  } else {
    draft.spec.environment.emplace("PET_NPROC_PER_NODE", "auto");
  }
  // The first task is the master here, also where the file has workers only.
  const int first = master != nullptr ? 0 : 1;
  std::map<std::string, std::string> hosts{
      {metadata.file_name + (first == 0 ? "-master-0" : "-worker-0"), draft.spec.name + "-master"}};
  for (int i = 0; i < draft.spec.workers; ++i) {
    hosts[metadata.file_name + "-worker-" + std::to_string(i + first)] =
        draft.spec.name + "-worker-" + std::to_string(i);
  }
  replace_hosts(hosts, metadata, "", false, draft.spec);
  return draft;
}

// --- TFJob

namespace {

/// The roles of a TFJob, with the one that leads.
struct TensorFlowRoles {
  const Replicas* chief = nullptr;
  const Replicas* workers = nullptr;
  const Replicas* servers = nullptr;
  const Replicas* evaluator = nullptr;
};

/// A worker that is alone needs no cluster, and gets no TF_CONFIG.
bool is_alone(const TensorFlowRoles& roles) {
  return roles.servers == nullptr && roles.evaluator == nullptr &&
         ((roles.chief == nullptr && roles.workers->count == 1) ||
          (roles.chief != nullptr && roles.workers == nullptr));
}

std::map<std::string, std::string> tensorflow_hosts(const std::string& name,
                                                    const TensorFlowRoles& roles,
                                                    const job::JobSpec& spec) {
  std::map<std::string, std::string> hosts;
  const int first = roles.chief == nullptr ? 1 : 0;
  const std::string chief = spec.name + "-chief";
  hosts[name + "-chief-0"] = chief;
  hosts[name + "-master-0"] = chief;
  if (first == 1) hosts[name + "-worker-0"] = chief;
  for (int i = 0; i < spec.workers; ++i) {
    hosts[name + "-worker-" + std::to_string(i + first)] =
        spec.name + "-worker-" + std::to_string(i);
  }
  for (int i = 0; i < spec.parameter_servers; ++i) {
    hosts[name + "-ps-" + std::to_string(i)] = spec.name + "-ps-" + std::to_string(i);
  }
  return hosts;
}

/// Which tasks must succeed.
void use_success_policy(const std::optional<Node>& node, Draft& draft) {
  const auto word = node ? node->word({"", "AllWorkers"}) : std::nullopt;
  if (word == "AllWorkers" && draft.spec.kind == job::Kind::kGrpc) {
    draft.spec.success = job::Success::kAll;
  }
}

void add_tensorflow_roles(const TensorFlowRoles& roles, const TranslationOptions& options,
                          Draft& draft, Findings& findings) {
  const Pod& base = (roles.workers != nullptr ? *roles.workers : *roles.chief).pod;
  const Pod& leader = (roles.chief != nullptr ? *roles.chief : *roles.workers).pod;
  add_roles({.base = &base,
             .leader = &leader,
             .parameter_server = roles.servers == nullptr ? nullptr : &roles.servers->pod,
             .evaluator = roles.evaluator == nullptr ? nullptr : &roles.evaluator->pod},
            {"TF_CONFIG"}, options, draft, findings);
}

}  // namespace

Draft read_tf_job(Map& document, const Surroundings& surroundings,
                  const TranslationOptions& options) {
  const Metadata metadata = read_metadata(document, options);
  Draft draft = begin_draft(metadata, options, document.node());
  Findings& findings = document.node().findings();
  const auto spec_node = document.require("spec");
  if (!spec_node) return draft;
  Map spec(*spec_node);
  const RunPolicy policy =
      read_run_policy(spec.take("runPolicy"), "kubeflow.org/training-operator", options, draft);
  const auto success = spec.take("successPolicy");
  spec.refuse("enableDynamicWorker", ": each task has the addresses of the whole cluster");
  const PodContext context{.config_maps = surroundings.config_maps,
                           .on_kubernetes = options.on_kubernetes,
                           .container = "tensorflow"};
  const auto specs = spec.require("tfReplicaSpecs");
  const auto all =
      read_replica_specs(specs, {"Chief", "Master", "Worker", "PS", "Evaluator"}, context);
  spec.end();
  if (!specs) return draft;
  if (find(all, "Chief") != nullptr && find(all, "Master") != nullptr) {
    specs->fault("has a Chief and a Master, which are the same; give one");
  }
  TensorFlowRoles roles{.chief = find(all, "Chief"),
                        .workers = find(all, "Worker"),
                        .servers = find(all, "PS"),
                        .evaluator = find(all, "Evaluator")};
  if (roles.chief == nullptr) roles.chief = find(all, "Master");
  require_one(roles.chief, findings);
  require_one(roles.evaluator, findings);
  if (roles.chief == nullptr && roles.workers == nullptr) {
    specs->fault("has neither a Chief nor Workers");
    return draft;
  }
  job::JobSpec& job = draft.spec;
  job.kind = is_alone(roles) ? job::Kind::kSingle : job::Kind::kGrpc;
  if (job.kind == job::Kind::kGrpc) {
    const int count = roles.workers == nullptr ? 0 : roles.workers->count;
    // Without a chief, worker 0 leads.
    job.chief_is_worker = roles.chief == nullptr;
    job.workers = roles.chief == nullptr ? count - 1 : count;
    job.parameter_servers = roles.servers == nullptr ? 0 : roles.servers->count;
    job.evaluators = roles.evaluator == nullptr ? 0 : 1;
    if (roles.workers != nullptr) draft.origins["workers"] = roles.workers->count_place;
    if (roles.servers != nullptr) draft.origins["parameter_servers"] = roles.servers->count_place;
    use_min_available(policy, 1 + job.parameter_servers + job.evaluators, draft);
  }
  use_success_policy(success, draft);
  use_restart_policies(all, policy, "Never", draft);
  add_tensorflow_roles(roles, options, draft, findings);
  replace_hosts(tensorflow_hosts(metadata.file_name, roles, job), metadata, "", false, job);
  return draft;
}

}  // namespace muster::dialects::kubernetes
