// A TrainJob of Kubeflow's Trainer: the pods of its training runtime, changed by the job. The runtime
// is in the same file, or is a runtime that Trainer installs.
//
// The path of a fault in a runtime begins in the runtime's own document, which the line identifies.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "dialects/kubernetes/kinds.h"

namespace muster::dialects::kubernetes {

namespace {

constexpr int64_t kMostNodes = 1001;

constexpr const char* kKnownRuntimes =
    "torch-distributed, mpi-distributed, deepspeed-distributed and mlx-distributed";

/// The runtimes that Trainer 2.3 (mpi-distributed: 2.0) installs, as far as they have a meaning here.
constexpr std::string_view kTorchRuntime = R"(
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                spec: {containers: [{name: node, image: "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"}]}
)";

std::string mpi_runtime(const std::string& image, const std::string& command) {
  const std::string container = "{containers: [{name: node, image: \"" + image +
                                "\", securityContext: {runAsUser: 1000}" + command + "}]}";
  return R"(
spec:
  mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, runLauncherAsNode: true}}
  template:
    spec:
      replicatedJobs:
        - name: launcher
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec: {template: {spec: )" +
         container + R"(}}
        - name: node
          template:
            spec: {template: {spec: {containers: [{name: node, image: ")" +
         image + R"(", securityContext: {runAsUser: 1000}}]}}}
)";
}

/// Empty: it is not one of Trainer's.
std::string built_in_runtime(const std::string& name) {
  if (name == "torch-distributed") return std::string(kTorchRuntime);
  if (name == "mpi-distributed") {
    return mpi_runtime("mpioperator/mpi-pi:openmpi",
                       ", command: [mpirun], args: [/home/mpiuser/pi]");
  }
  if (name == "deepspeed-distributed") {
    return mpi_runtime("ghcr.io/kubeflow/trainer/deepspeed-runtime", "");
  }
  if (name == "mlx-distributed") {
    return mpi_runtime("ghcr.io/kubeflow/trainer/mlx-runtime", "");
  }
  return "";
}

// --- the runtime

enum class Policy { kPlain, kTorch, kMpi };

struct Runtime {
  Policy policy = Policy::kPlain;
  int nodes = 1;
  std::optional<int64_t> processes;
  bool launcher_is_node = false;
  std::optional<Pod> node;
  std::optional<Pod> launcher;
  std::optional<int64_t> retries;  ///< backoffLimit of its jobs
};

void read_mpi_policy(const Node& node, Runtime& runtime) {
  Map map(node);
  runtime.policy = Policy::kMpi;
  runtime.processes = map.integer("numProcPerNode", 1, 1024);
  if (const auto mpi = map.take("mpiImplementation")) mpi->word({"OpenMPI", "Intel", "MPICH", ""});
  runtime.launcher_is_node = map.flag("runLauncherAsNode").value_or(false);
  map.skip({"sshAuthMountPath"});
  map.end();
}

void read_torch_policy(const Node& node, Runtime& runtime) {
  Map map(node);
  runtime.policy = Policy::kTorch;
  if (const auto processes = map.take("numProcPerNode")) {
    if (processes->text() != "auto") runtime.processes = processes->integer(1, 1024);
  }
  map.refuse("elasticPolicy", "; Trainer itself does not serve it");
  map.refuse("envInjection", ": a task of Muster has one container");
  map.end();
}

void read_policy(const std::optional<Node>& node, Runtime& runtime) {
  if (!node) return;
  Map map(*node);
  runtime.nodes = static_cast<int>(map.integer("numNodes", 1, kMostNodes).value_or(1));
  if (const auto torch = map.take("torch")) read_torch_policy(*torch, runtime);
  if (const auto mpi = map.take("mpi")) read_mpi_policy(*mpi, runtime);
  for (const char* const other : {"jax", "xgboost", "flux"}) {
    if (const auto found = map.take(other)) {
      found->fault("is not supported; Muster runs torch, mpi and plain runtimes");
    }
  }
  map.end();
}

/// The fields of a runtime's Job besides its pods. Trainer sets the number of its pods.
void read_job_fields(Map& job, Runtime& runtime) {
  if (const auto limit = job.integer("backoffLimit", 0, kMostSeconds)) runtime.retries = limit;
  job.skip({"parallelism", "completions", "completionMode", "suspend", "podReplacementPolicy",
            "selector", "manualSelector", "managedBy"});
  job.refuse("podFailurePolicy", "");
  job.refuse("successPolicy", "");
  job.refuse("backoffLimitPerIndex", "");
  job.refuse("maxFailedIndexes", "");
  job.warn("ttlSecondsAfterFinished", "has no effect");
  job.warn("activeDeadlineSeconds",
           "has no effect; set spec.activeDeadlineSeconds of the TrainJob");
}

void read_replicated_job(const Node& node, const PodContext& context, Runtime& runtime) {
  Map map(node);
  const auto name_node = map.require("name");
  const std::string name = name_node ? name_node->text().value_or("") : "";
  const auto replicas = map.take("replicas");
  if (replicas && replicas->integer(1, 1) != 1) return;
  map.skip({"groupName"});
  const auto template_node = map.require("template");
  map.skip({"dependsOn"});  // Muster starts the launcher after the nodes
  map.end();
  if (name != "node" && name != "launcher") {
    return node.fault(
        "'" + name +
        "' is a step of its own, which Muster does not run; submit it as a job before "
        "this one, and remove it from the runtime");
  }
  if (!template_node) return;
  Map outer(*template_node);
  outer.skip({"metadata"});
  const auto job_node = outer.require("spec");
  outer.end();
  if (!job_node) return;
  Map job(*job_node);
  read_job_fields(job, runtime);
  const auto pod = job.require("template");
  job.end();
  if (!pod) return;
  (name == "node" ? runtime.node : runtime.launcher) = read_pod_template(*pod, context);
}

Runtime read_runtime(const Node& document, const PodContext& context) {
  Runtime runtime;
  Map map(document);
  map.skip({"apiVersion", "kind", "metadata", "status"});
  const auto spec_node = map.require("spec");
  map.end();
  if (!spec_node) return runtime;
  Map spec(*spec_node);
  read_policy(spec.take("mlPolicy"), runtime);
  spec.skip({"podGroupPolicy"});  // every job of Muster starts as a whole
  const auto template_node = spec.require("template");
  spec.end();
  if (!template_node) return runtime;
  Map outer(*template_node);
  outer.skip({"metadata"});
  const auto jobs_node = outer.require("spec");
  outer.end();
  if (!jobs_node) return runtime;
  Map set(*jobs_node);
  set.skip({"network", "successPolicy", "startupPolicy", "suspend", "managedBy",
            "ttlSecondsAfterFinished", "coordinator"});
  set.warn("failurePolicy", "has no effect: a failed task fails the job");
  const auto list = set.require("replicatedJobs");
  set.end();
  if (!list) return runtime;
  for (const Node& job : list->elements()) read_replicated_job(job, context, runtime);
  if (!runtime.node && !runtime.launcher) list->fault("has no job 'node'");
  return runtime;
}

// --- what the job changes

/// The pods that a name of a replicated job means.
Pod* pod_named(const std::string& name, Runtime& runtime) {
  if (name == "node" && runtime.node) return &*runtime.node;
  if (name == "launcher" && runtime.launcher) return &*runtime.launcher;
  return nullptr;
}

Pod* trainer_of(Runtime& runtime) {
  if (runtime.policy == Policy::kMpi && runtime.launcher) return &*runtime.launcher;
  if (runtime.node) return &*runtime.node;
  return runtime.launcher ? &*runtime.launcher : nullptr;
}

std::vector<Word> words_in(const Node& list) {
  std::vector<Word> words;
  for (const Node& element : list.elements()) {
    if (auto text = element.text()) words.push_back({.text = *text, .place = element.place()});
  }
  return words;
}

void read_trainer(const Node& node, const PodContext& context, Runtime& runtime, Draft& draft) {
  Map map(node);
  Pod* const pod = trainer_of(runtime);
  Pod unused;
  Pod& target = pod == nullptr ? unused : *pod;
  const auto image = map.text("image");
  if (image) {
    // The nodes of an MPI runtime run the ranks of the same program.
    for (Pod* each : {pod_named("node", runtime), pod_named("launcher", runtime)}) {
      if (each != nullptr) each->image = *image;
    }
  }
  if (const auto command = map.take("command")) target.command = words_in(*command);
  if (const auto arguments = map.take("args")) target.arguments = words_in(*arguments);
  if (const auto resources = map.take("resourcesPerNode")) {
    for (Pod* each : {pod_named("node", runtime), pod_named("launcher", runtime)}) {
      const bool is_node =
          each != nullptr && (each == pod_named("node", runtime) || runtime.launcher_is_node);
      if (is_node) read_resources(*resources, context, *each);
    }
  }
  if (const auto list = map.take("env")) read_environment(*list, context, {}, target);
  if (const auto nodes = map.take("numNodes")) {
    draft.origins["workers"] = nodes->place();
    runtime.nodes = static_cast<int>(nodes->integer(1, kMostNodes).value_or(1));
  }
  if (const auto processes = map.take("numProcPerNode")) {
    draft.origins["slots_per_worker"] = processes->place();
    const bool is_auto = processes->value().scalar == "auto";
    runtime.processes = is_auto ? std::nullopt : processes->integer(1, 1024);
  }
  map.end();
}

/// A container of a patch.
void patch_container(const Node& node, const VolumeSources& volumes, const PodContext& context,
                     Pod& pod) {
  Map map(node);
  const auto name = map.text("name").value_or("");
  const auto list = map.take("env");
  const auto mounts = map.take("volumeMounts");
  const auto security = map.take("securityContext");
  map.end();
  if (name != "node") {
    return node.fault("'" + name + "' is a container that Muster does not run");
  }
  if (list) read_environment(*list, context, {}, pod);
  if (mounts) read_mounts(*mounts, volumes, context, pod);
  if (security) read_security_context(*security, pod);
}

void patch_pod(const Node& node, const PodContext& context, Pod& pod) {
  Map map(node);
  map.skip({"metadata", "targetJobs"});
  const auto spec_node = map.take("spec");
  map.end();
  if (!spec_node) return;
  Map spec(*spec_node);
  VolumeSources volumes;
  if (const auto list = spec.take("volumes")) read_volume_sources(*list, volumes);
  const auto containers = spec.take("containers");
  if (const auto list = spec.take("initContainers")) {
    for (const Node& one : list->elements())
      one.fault("is an init container; give it to the runtime, which this file may contain");
  }
  read_pod_fields(spec, context, pod);
  spec.end();
  if (!containers) return;
  for (const Node& container : containers->elements()) {
    patch_container(container, volumes, context, pod);
  }
}

Pod* patched(const Node& name_node, Runtime& runtime) {
  const auto name = name_node.text();
  Pod* const pod = name ? pod_named(*name, runtime) : nullptr;
  if (name && pod == nullptr) name_node.fault("'" + *name + "' is not a job of the runtime");
  return pod;
}

/// spec.runtimePatches, since Trainer 2.2.
void read_patches(const Node& list, const PodContext& context, Runtime& runtime, Draft& draft) {
  for (const Node& patch : list.elements()) {
    Map map(patch);
    map.skip({"manager", "time"});
    const auto runtime_node = map.take("trainingRuntimeSpec");
    map.end();
    if (!runtime_node) continue;
    Map runtime_map(*runtime_node);
    const auto template_node = runtime_map.take("template");
    runtime_map.end();
    if (!template_node) continue;
    Map set(*template_node);
    if (const auto metadata = set.take("metadata")) {
      Map inner(*metadata);
      if (const auto labels = inner.take("labels")) {
        for (auto& [key, value] : labels->pairs()) draft.spec.labels[key] = value;
      }
      if (const auto annotations = inner.take("annotations")) {
        for (auto& [key, value] : annotations->pairs()) draft.spec.annotations[key] = value;
      }
      inner.end();
    }
    const auto spec = set.take("spec");
    set.end();
    if (!spec) continue;
    Map spec_map(*spec);
    const auto jobs = spec_map.take("replicatedJobs");
    spec_map.end();
    if (!jobs) continue;
    for (const Node& job : jobs->elements()) {
      Map job_map(job);
      const auto name = job_map.require("name");
      const auto job_template = job_map.take("template");
      job_map.end();
      Pod* const pod = name ? patched(*name, runtime) : nullptr;
      if (pod == nullptr || !job_template) continue;
      Map template_map(*job_template);
      template_map.skip({"metadata"});
      const auto job_spec = template_map.take("spec");
      template_map.end();
      if (!job_spec) continue;
      Map job_spec_map(*job_spec);
      const auto pod_node = job_spec_map.take("template");
      job_spec_map.end();
      if (pod_node) patch_pod(*pod_node, context, *pod);
    }
  }
}

/// spec.podTemplateOverrides of Trainer 2.0 and 2.1, and podSpecOverrides before.
void read_overrides(const Node& list, const PodContext& context, Runtime& runtime) {
  for (const Node& override_node : list.elements()) {
    Map map(override_node);
    const auto targets = map.require("targetJobs");
    const auto metadata = map.take("metadata");
    const auto spec = map.take("spec");
    map.end();
    if (!targets || !spec) continue;
    for (const Node& target : targets->elements()) {
      Map target_map(target);
      const auto name = target_map.require("name");
      target_map.end();
      Pod* const pod = name ? patched(*name, runtime) : nullptr;
      if (pod != nullptr) patch_pod(override_node, context, *pod);
    }
  }
}

// --- the job

/// The runtime's document, from the file or from Trainer's own.
class RuntimeChoice {
 public:
  explicit RuntimeChoice(const Surroundings& surroundings) : surroundings_(surroundings) {}

  /// Nothing: a fault was added.
  std::optional<Runtime> choose(const Node& reference, const PodContext& context, bool has_image) {
    Map map(reference);
    const auto name_node = map.require("name");
    map.skip({"apiGroup"});
    if (const auto kind = map.take("kind")) {
      kind->word({"ClusterTrainingRuntime", "TrainingRuntime"});
    }
    map.end();
    const auto name = name_node ? name_node->text() : std::nullopt;
    if (!name) return std::nullopt;
    const auto found = surroundings_.runtimes.find(*name);
    if (found != surroundings_.runtimes.end()) return read_runtime(found->second, context);
    const std::string text = built_in_runtime(*name);
    if (text.empty()) {
      name_node->fault("'" + *name + "' is neither in this file nor one of Trainer's runtimes " +
                       kKnownRuntimes + "; add the TrainingRuntime to the file");
      return std::nullopt;
    }
    auto parsed = config::parse_yaml(text);
    if (!parsed) return std::nullopt;  // a test reads each of them
    built_in_ = *std::move(parsed);
    Findings own;
    Runtime runtime = read_runtime(Node(built_in_, Place{reference.place()}, own), context);
    if (!has_image) {
      name_node->warning("is not in this file; the image is that of Trainer 2.3, " +
                         trainer_of(runtime)->image);
    }
    place_at(reference.place(), runtime);
    return runtime;
  }

 private:
  /// Faults in the pods of a runtime that is in no file are shown at the reference.
  static void place_at(const Place& place, Runtime& runtime) {
    for (Pod* pod : {pod_named("node", runtime), pod_named("launcher", runtime)}) {
      if (pod == nullptr) continue;
      pod->place = place;
      pod->container_place = place;
    }
  }

  const Surroundings& surroundings_;
  config::YamlValue built_in_;
};

void refuse_initializer(const std::optional<Node>& node) {
  if (!node || node->is_default()) return;
  node->fault(
      "is not supported: Muster runs no step before the training; fetch the data in the "
      "command, or in a job of its own into a volume of the project");
}

/// The number of processes that torchrun starts in each task, as Trainer computes it.
void use_torch_processes(const Runtime& runtime, const Pod& pod, Draft& draft) {
  if (runtime.processes) {
    draft.spec.slots_per_worker = static_cast<int>(*runtime.processes);
  } else if (pod.resources.gpus > 0) {
    draft.spec.slots_per_worker = pod.resources.gpus;
  } else {
    const int64_t cpus = std::min<int64_t>(pod.resources.cpu_milli / 1000, 1024);
    draft.spec.slots_per_worker = std::max(static_cast<int>(cpus), 1);
  }
}

void use_mpi_processes(const Runtime& runtime, const Pod& node, Draft& draft) {
  const int64_t processes = runtime.processes.value_or(1);
  const int gpus = node.resources.gpus;
  draft.spec.slots_per_worker = static_cast<int>(processes == 1 && gpus > 1 ? gpus : processes);
}

void add_torch_job(const Runtime& runtime, const TranslationOptions& options,
                   const Metadata& metadata, Draft& draft, Findings& findings) {
  const Pod& pod = runtime.node ? *runtime.node : *runtime.launcher;
  job::JobSpec& spec = draft.spec;
  const bool is_torch = runtime.policy == Policy::kTorch;
  spec.kind = is_torch || runtime.nodes > 1 ? job::Kind::kTorch : job::Kind::kSingle;
  spec.workers = runtime.nodes - 1;
  if (spec.workers > 0) spec.success = job::Success::kAll;
  if (is_torch) use_torch_processes(runtime, pod, draft);
  add_roles({.base = &pod, .leader = &pod},
            {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR",
             "PET_MASTER_PORT", "JOB_COMPLETION_INDEX"},
            options, draft, findings);
  if (spec.kind == job::Kind::kSingle) return;
  std::map<std::string, std::string> hosts{
      {metadata.file_name + "-node-0-0", spec.name + "-master"}};
  for (int i = 0; i < spec.workers; ++i) {
    hosts[metadata.file_name + "-node-0-" + std::to_string(i + 1)] =
        spec.name + "-worker-" + std::to_string(i);
  }
  replace_hosts(hosts, metadata, metadata.file_name, true, spec);
}

void add_mpi_job(const Runtime& runtime, const TranslationOptions& options,
                 const Metadata& metadata, const Node& document, Draft& draft) {
  if (!runtime.launcher || !runtime.node) {
    return document.fault("has an MPI runtime without a job 'launcher' and a job 'node'");
  }
  job::JobSpec& spec = draft.spec;
  spec.kind = job::Kind::kMpi;
  use_mpi_processes(runtime, *runtime.node, draft);
  // As Trainer: the launcher is one of the nodes, and there is at least one other.
  spec.workers = runtime.launcher_is_node ? std::max(runtime.nodes - 1, 1) : runtime.nodes;
  if (runtime.launcher_is_node) spec.leader_slots = spec.slots_per_worker;
  add_roles({.base = &*runtime.node, .leader = &*runtime.launcher}, {}, options, draft,
            document.findings());
  std::map<std::string, std::string> hosts{
      {metadata.file_name + "-launcher-0-0", spec.name + "-launcher"}};
  for (int i = 0; i < spec.workers; ++i) {
    const std::string number = std::to_string(i);
    hosts[metadata.file_name + "-node-0-" + number] = spec.name + "-worker-" + number;
  }
  replace_hosts(hosts, metadata, metadata.file_name, true, spec);
  replace_everywhere("/etc/mpi/hostfile", "/generated/hostfile", spec);
}

}  // namespace

Draft read_train_job(Map& document, const Surroundings& surroundings,
                     const TranslationOptions& options) {
  const Metadata metadata = read_metadata(document, options);
  Draft draft = begin_draft(metadata, options, document.node());
  Findings& findings = document.node().findings();
  const auto spec_node = document.require("spec");
  if (!spec_node) return draft;
  Map spec(*spec_node);
  const auto reference = spec.require("runtimeRef");
  const auto trainer = spec.take("trainer");
  const auto patches = spec.take("runtimePatches");
  auto overrides = spec.take("podTemplateOverrides");
  if (!overrides) overrides = spec.take("podSpecOverrides");
  refuse_initializer(spec.take("initializer"));
  draft.spec.held = spec.flag("suspend").value_or(false);
  use_time_limit(spec.take("activeDeadlineSeconds"), draft);
  check_manager(spec.take("managedBy"), "trainer.kubeflow.org/trainjob-controller");
  spec.end();
  if (!reference) return draft;
  const PodContext context{.config_maps = surroundings.config_maps,
                           .on_kubernetes = options.on_kubernetes,
                           .container = "node"};
  bool has_image = false;
  if (trainer) {
    for (const config::YamlEntry& entry : trainer->value().map) {
      has_image = has_image || entry.key == "image";
    }
  }
  RuntimeChoice choice(surroundings);
  auto runtime = choice.choose(*reference, context, has_image);
  if (!runtime || (!runtime->node && !runtime->launcher)) return draft;
  if (trainer) read_trainer(*trainer, context, *runtime, draft);
  if (patches) read_patches(*patches, context, *runtime, draft);
  if (overrides) read_overrides(*overrides, context, *runtime);
  // The Jobs of a JobSet restart their pods as often as a Job does by default.
  constexpr int kUsualRetries = 6;
  draft.spec.scheduling.retries = static_cast<int>(
      std::min<int64_t>(runtime->retries.value_or(kUsualRetries), kUnlimitedRetries));
  if (runtime->policy == Policy::kMpi) {
    add_mpi_job(*runtime, options, metadata, document.node(), draft);
  } else {
    add_torch_job(*runtime, options, metadata, draft, findings);
  }
  return draft;
}

}  // namespace muster::dialects::kubernetes
