// The job that a user asks for. The command line, job files and the dialects all produce one
// JobSpec.
//
// Plain values. validate() checks them (job/validate.h).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace muster::job {

/// How the tasks of a job find each other.
enum class Kind {
  kSingle,  ///< one task, which runs the command
  kMpi,     ///< a launcher that runs the command, and workers it reaches by ssh
  kGrpc,    ///< a TensorFlow cluster: a chief, workers and parameter servers; each runs the command
  kTorch,   ///< a master and workers; each runs the command, with its rank and the master's address
};

std::string_view to_string(Kind kind);
std::optional<Kind> kind_of(std::string_view name);

/// How far the tasks of a job are isolated from the machine they run on.
enum class Sandbox {
  kBubblewrap,  ///< own hostname, process tree, /generated, /dev/shm
  kNone,        ///< plain processes; only the ssh configuration resolves names
};

std::string_view to_string(Sandbox sandbox);
std::optional<Sandbox> sandbox_of(std::string_view name);

/// How a launcher reaches the workers that it starts ranks in.
enum class LaunchBy {
  kAuto,   ///< ssh if the images have sshd and ssh, else Muster's own remote shell
  kSsh,    ///< ssh, and an sshd in each worker
  kAgent,  ///< Muster's remote shell: an image needs only its MPI
  kSrun,   ///< Slurm's srun starts the ranks, and MPI uses PMIx; only on Slurm
};

std::string_view to_string(LaunchBy launch);
std::optional<LaunchBy> launch_by_of(std::string_view name);

/// When a host fetches an image that it may already have.
enum class PullPolicy { kIfMissing, kAlways, kNever };

/// "if-missing", "always", "never".
std::string_view to_string(PullPolicy policy);
std::optional<PullPolicy> pull_policy_of(std::string_view name);

/// The login for the registry of an image.
struct RegistryLogin {
  std::string server;    ///< "registry.example.com:5000"; empty: the registry in the image's name
  std::string username;  ///< empty: no login
  std::string secret;    ///< name of the project's secret with the password

  bool operator==(const RegistryLogin&) const = default;
};

/// How far the containers of a job are isolated from their host, if its tasks are containers.
/// Each default is the stricter one.
struct ContainerSpec {
  PullPolicy pull = PullPolicy::kIfMissing;
  bool writable_root = false;             ///< else only volumes, /tmp and the like can be written
  bool new_privileges = false;            ///< set-user-id programs gain privileges
  std::vector<std::string> capabilities;  ///< in addition to the default ones: "SYS_PTRACE"
  int64_t shm_bytes = 0;                  ///< of /dev/shm; 0: the engine's default

  bool operator==(const ContainerSpec&) const = default;
};

/// Options for Slurm, if the job runs there, in addition to those that follow from the rest of the
/// spec. Empty: Slurm's default.
struct SlurmSpec {
  std::string partition;  ///< instead of the node pools: "gpu", or several: "gpu,long"
  std::string account;    ///< instead of the project's
  std::string qos;
  std::string reservation;
  std::string constraint;  ///< features of nodes: "a100&nvlink"

  bool operator==(const SlurmSpec&) const = default;
};

/// A container beside the program of a task, in the same pod. Only Kubernetes runs it. It has the
/// network of the task, and the parts of the task's volumes that it mounts.
struct PodContainer {
  enum class Runs {
    kBefore,  ///< an init container: ends before the task starts, each after the one before it
    kBeside,  ///< a sidecar: runs until the task has ended, and is started again if it ends
  };
  /// The tasks whose pods have it.
  enum class Of { kAll, kLeader, kWorkers, kParameterServers, kEvaluators };

  std::string name;
  Runs runs = Runs::kBefore;
  Of of = Of::kAll;
  std::string image;
  PullPolicy pull = PullPolicy::kIfMissing;
  std::vector<std::string> command;  ///< empty: the image's entry point
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::string folder;  ///< empty: the image's
  std::string user;    ///< "UID[:GID]"; empty: the task's
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  std::vector<std::string> mounts;  ///< "PATH[:OWN][:ro]": PATH is in a volume of the task

  bool operator==(const PodContainer&) const = default;
};

/// Options for Kubernetes, if the job runs there, in addition to those that follow from the rest of
/// the spec. They apply to the pods of all tasks. Empty: the server's defaults.
struct KubernetesSpec {
  std::map<std::string, std::string> node_selector;  ///< labels that a node must have
  std::vector<std::string> tolerations;              ///< "KEY[=VALUE][:EFFECT]", or "*": all taints
  std::string priority_class;
  std::string service_account;  ///< its token is mounted; empty: no token
  std::string runtime_class;
  std::vector<std::string> image_pull_secrets;
  std::vector<std::string> claims;             ///< volume claims: "CLAIM[/FOLDER]:PATH[:ro]"
  std::map<std::string, std::string> devices;  ///< other resources of nodes: "rdma/hca" -> "1"
  std::map<std::string, std::string> labels;   ///< of the pods
  std::map<std::string, std::string> annotations;
  std::vector<PodContainer> containers;  ///< beside the programs of the tasks

  bool operator==(const KubernetesSpec&) const = default;
};

/// The resources that one task needs on a node. Zero: no claim.
struct Resources {
  int gpus = 0;                  ///< whole GPUs; 0 if it requests a part of one
  int gpu_share_milli = 0;       ///< 1 to 999: that part of one GPU, in thousandths
  int64_t gpu_memory_bytes = 0;  ///< or the part of one GPU that has this memory
  int64_t cpu_milli = 0;         ///< thousandths of a CPU
  int64_t memory_bytes = 0;

  bool operator==(const Resources&) const = default;
};

/// The purpose of a job sets its default priority, and whether it may be evicted.
enum class Purpose {
  kTrain,      ///< runs unattended: may exceed the quota, and be evicted
  kBuild,      ///< interactive use (--interactive): within the quota, never evicted
  kInference,  ///< users depend on it: as kBuild, with a higher priority
};

std::string_view to_string(Purpose purpose);
std::optional<Purpose> purpose_of(std::string_view name);

/// How the tasks are distributed over nodes.
enum class Packing {
  kAuto,    ///< as the server is configured; by default to leave large free blocks for others
  kPack,    ///< the fullest node that fits
  kSpread,  ///< the emptiest node
};

std::string_view to_string(Packing packing);
std::optional<Packing> packing_of(std::string_view name);

/// How an elastic job handles workers that join and leave while it runs.
enum class Resize {
  kAuto,     ///< kLive if its command supports it (launch/elastic.h), else kRestart
  kLive,     ///< it continues with the present workers, and is notified of each change
  kRestart,  ///< it restarts with fewer workers, and grows only at its next restart
};

std::string_view to_string(Resize resize);
std::optional<Resize> resize_of(std::string_view name);

/// Which tasks must succeed for a job whose tasks all run the program (kGrpc, kTorch).
enum class Success {
  kLeader,  ///< the chief or master; the workers have a moment to end after it
  kAll,     ///< the leader and every worker; the job continues until the last has ended
};

std::string_view to_string(Success success);
std::optional<Success> success_of(std::string_view name);

/// What to do when a task fails in the described way. The first matching rule counts.
struct RetryRule {
  enum class Action {
    kRetry,      ///< start again, at the cost of one retry
    kFail,       ///< do not retry, even if retries are left
    kAvoidNode,  ///< start again on other nodes, and never on that node; costs no retry
  };
  std::optional<int> exit_code;  ///< of the task at fault, as a shell shows it (137: SIGKILL)
  std::optional<int> last_exit_code = {};  ///< all codes from exit_code to this
  std::string log_pattern;                 ///< ECMAScript, found in its last lines; empty: any
  Action action = Action::kRetry;

  bool operator==(const RetryRule&) const = default;
};

std::string_view to_string(RetryRule::Action action);
std::optional<RetryRule::Action> retry_action_of(std::string_view name);

/// Settings that decide when and where a job runs, beside the resources of its tasks.
struct Scheduling {
  Purpose purpose = Purpose::kTrain;
  std::optional<int> priority;          ///< 0 to 1000; nothing: 50, 75, 100 or 125 by purpose
  std::optional<bool> preemptible;      ///< nothing: below priority 100
  std::optional<int> min_workers;       ///< elastic: runs with at least so many of `workers`
  Resize resize = Resize::kAuto;        ///< of an elastic job
  std::vector<std::string> node_pools;  ///< tried in this order; empty: any the project has
  std::vector<std::string> gpu_models;  ///< any of these; empty: any
  Packing packing = Packing::kAuto;
  std::string required_topology;                        ///< a level, "rack": all tasks within one
  std::string preferred_topology;                       ///< within one if there is room
  std::optional<std::chrono::milliseconds> time_limit;  ///< the job is ended after it
  int retries = 0;  ///< how often it may start again after its own failure
  std::vector<RetryRule> retry_rules;
  std::optional<base::Time> begin;  ///< it waits until then
  /// Of the jobs of one owner and project with this text, one runs at a time.
  std::string singleton;

  bool operator==(const Scheduling&) const = default;
};

/// From this priority on a job is not preemptible by default.
inline constexpr int kFirstNonPreemptiblePriority = 100;

/// The priority and preemptibility in force: train 50, preemptible build 75, build 100, inference
/// 125, unless the spec sets them.
int priority_of(const Scheduling& scheduling);
bool is_preemptible(const Scheduling& scheduling);

/// A secret of the project that the tasks of a job get.
struct SecretUse {
  std::string name;
  std::string variable;  ///< of the environment; empty: no variable
  std::string file;      ///< below /generated/secrets; empty: no file

  bool operator==(const SecretUse&) const = default;
};

/// A file or folder that tasks find at `target`.
struct Volume {
  enum class Kind {
    kHostPath,   ///< `source`: a file or folder of the node
    kTree,       ///< `source`: the id of uploaded files (workspace/tree_store.h), of which
                 ///< each job has a copy; empty: an empty folder
    kStorage,    ///< `source`: the name of a folder of the project, which outlives its jobs
    kArtifacts,  ///< a folder of the job, kept as long as the job is; without source
  };
  Kind kind = Kind::kHostPath;
  std::string source;
  std::string target;  ///< absolute
  bool read_only = false;

  bool operator==(const Volume&) const = default;
};

std::string_view to_string(Volume::Kind kind);
std::optional<Volume::Kind> volume_kind_of(std::string_view name);

/// The program and resources of the tasks of one role, where they differ from the job's.
struct RoleSpec {
  std::string image;                               ///< empty: the job's
  std::string user;                                ///< if an image is given: as JobSpec::user
  RegistryLogin registry;                          ///< if an image is given
  std::vector<std::string> command;                ///< empty: the job's, with its arguments
  std::vector<std::string> arguments;              ///< if `command` is empty: after the job's
  Resources resources;                             ///< not inherited from the job
  std::map<std::string, std::string> environment;  ///< in addition to the job's

  bool operator==(const RoleSpec&) const = default;
};

/// A job waits until another job of its project has ended in this way.
struct Dependency {
  enum class Condition {
    kOk,      ///< it succeeded
    kAny,     ///< it ended
    kFailed,  ///< it failed, or was stopped
  };
  std::string job;  ///< name or id
  Condition condition = Condition::kOk;
  /// Both are arrays: each member waits for the member with its index.
  bool by_member = false;

  bool operator==(const Dependency&) const = default;
};

/// "ok", "any", "failed".
std::string_view to_string(Dependency::Condition condition);
std::optional<Dependency::Condition> dependency_condition_of(std::string_view name);

/// Many jobs from one spec, which differ in their index and their line.
struct ArraySpec {
  std::string indexes;              ///< "0-99", "1,3,5-7"; empty: one index for each line, from 0
  std::vector<std::string> lines;   ///< one for each index, in order: text or JSON; may be empty
  int max_running = 0;              ///< at the same time; 0: no limit
  std::optional<int> max_failures;  ///< more failed members than this stop the array

  bool is_none() const { return indexes.empty() && lines.empty(); }
  bool operator==(const ArraySpec&) const = default;
};

struct JobSpec {
  std::string name;
  std::string project = "default";
  Kind kind = Kind::kSingle;
  /// The image of the tasks. An engine that does not run images uses a stand-in for it, or the
  /// machine's own files.
  std::string image;
  std::string user;        ///< "NAME-OR-NUMBER[:GROUP]" of the image; empty: the image's default
  RegistryLogin registry;  ///< of `image`
  ContainerSpec container;
  SlurmSpec slurm;
  KubernetesSpec kubernetes;
  LaunchBy launch = LaunchBy::kAuto;  ///< kMpi
  /// argv of the single task, of the launcher, or of every worker of a kGrpc or kTorch job. Empty:
  /// the image's command.
  std::vector<std::string> command;
  std::vector<std::string> arguments;  ///< after the command
  /// The command replaces the image's entry point; else it is passed to the entry point.
  bool replaces_entrypoint = true;
  int workers = 0;           ///< without the leader (launcher, chief, master); kSingle: 0
  int slots_per_worker = 1;  ///< ranks that a worker takes (hostfile slots)
  Resources resources;       ///< of each worker, or of the single task
  std::vector<std::string> worker_command;  ///< kMpi: the command of workers beside their sshd
  RoleSpec leader;       ///< of the launcher (without a command of its own), chief or master
  int leader_slots = 0;  ///< kMpi: ranks that the launcher takes; it is last in the hostfile
  bool chief_is_worker = false;        ///< kGrpc: TF_CONFIG has no chief; the chief is worker 0
  Success success = Success::kLeader;  ///< kGrpc, kTorch
  bool allow_launcher_only = false;    ///< kMpi: may succeed even if no worker ran a process
  int parameter_servers = 0;           ///< kGrpc
  RoleSpec parameter_server;
  int evaluators = 0;  ///< kGrpc: 0 or 1; evaluates checkpoints beside the cluster
  RoleSpec evaluator;
  std::vector<Volume> volumes;
  bool held = false;      ///< suspended from the start, until resume()
  bool input = false;     ///< the leader's program reads standard input (attach)
  bool terminal = false;  ///< the leader's program has a terminal
  /// How long the ended job is kept, with its logs and artifacts; nothing: the server's default.
  std::optional<std::chrono::milliseconds> keep_for;
  std::map<std::string, std::string> labels;       ///< for selecting jobs; without value: a tag
  std::map<std::string, std::string> annotations;  ///< for the submitter
  Scheduling scheduling;
  std::vector<Dependency> after;  ///< it waits for all of them
  ArraySpec array;                ///< is_none(): one job
  std::map<std::string, std::string> environment;
  std::vector<SecretUse> secrets;  ///< names; the values are read when a gang starts
  std::string folder;              ///< working directory of every task, absolute
  Sandbox sandbox = Sandbox::kBubblewrap;
  std::chrono::milliseconds start_timeout{30'000};  ///< until every worker answers
  std::chrono::milliseconds grace{10'000};          ///< between SIGTERM and SIGKILL

  bool operator==(const JobSpec&) const = default;
};

// --- the roles of a spec as a list

struct NamedRole {
  const char* field;  ///< of the spec: "parameter_server"
  const RoleSpec& role;
};

/// The roles of every kind of job. A role that the spec does not mention has its defaults. `spec`
/// must outlive the list.
inline std::array<NamedRole, 3> roles_of(const JobSpec& spec) {
  return {{{"leader", spec.leader},
           {"parameter_server", spec.parameter_server},
           {"evaluator", spec.evaluator}}};
}

/// Whether the spec names an image for any task.
inline bool names_an_image(const JobSpec& spec) {
  const auto roles = roles_of(spec);
  return !spec.image.empty() || std::any_of(roles.begin(), roles.end(), [](const NamedRole& named) {
    return !named.role.image.empty();
  });
}

// --- values inherited from the shell
//
// `muster submit` copies PATH, HOME and the working folder of its shell, which programs on the
// machine itself need. In an image, which has its own, they would be wrong. A job that names an
// image lists them in its annotations, because only its start shows whether the engine runs images.

/// Lists these variables of the spec's environment, and its folder, as the shell's. Does nothing if
/// the spec names no image.
void note_inherited(const std::set<std::string>& variables, bool folder, JobSpec& spec);

/// The folder is the user's choice after all.
void forget_inherited_folder(JobSpec& spec);

std::set<std::string> inherited_variables(const JobSpec& spec);
bool inherits_folder(const JobSpec& spec);

}  // namespace muster::job
