// What a user asks for. Every dialect and the YAML file end in one JobSpec; nothing else enters
// the system.
//
// Plain values. Whether they make sense is validate()'s question (job/validate.h).
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

namespace muster::job {

/// How the tasks of a job find each other.
enum class Kind {
  kSingle,  ///< one task, which runs the command
  kMpi,     ///< a launcher that runs the command, and workers it reaches by ssh
  kGrpc,    ///< a TensorFlow cluster: a chief, workers and parameter servers; each runs the command
  kTorch,   ///< a master and workers; each runs the command, told its rank and the master's address
};

std::string_view to_string(Kind kind);
std::optional<Kind> kind_of(std::string_view name);

/// How far the tasks of a job are set apart from the machine they run on.
enum class Sandbox {
  kBubblewrap,  ///< own hostname, process tree, /generated, /dev/shm
  kNone,        ///< plain processes; names resolve through the ssh configuration alone
};

std::string_view to_string(Sandbox sandbox);
std::optional<Sandbox> sandbox_of(std::string_view name);

/// How a launcher reaches the workers that it starts ranks in.
enum class LaunchBy {
  kAuto,   ///< by ssh where the images have what it takes, else by Muster's own remote shell
  kSsh,    ///< ssh, and an sshd in each worker
  kAgent,  ///< Muster's own: an image needs nothing but its MPI
  kSrun,   ///< Slurm's srun starts the ranks, and the MPI asks it by PMIx; only there
};

std::string_view to_string(LaunchBy launch);
std::optional<LaunchBy> launch_by_of(std::string_view name);

/// When an image is fetched though the host may have it.
enum class PullPolicy { kIfMissing, kAlways, kNever };

/// "if-missing", "always", "never".
std::string_view to_string(PullPolicy policy);
std::optional<PullPolicy> pull_policy_of(std::string_view name);

/// How a registry is told who fetches an image.
struct RegistryLogin {
  std::string server;    ///< "registry.example.com:5000"; empty: the one that the image names
  std::string username;  ///< empty: nobody logs in
  std::string secret;    ///< of the project: the one that holds the password

  bool operator==(const RegistryLogin&) const = default;
};

/// How far the containers of a job are set apart from their host, where its tasks are containers.
/// Each default is the stricter one.
struct ContainerSpec {
  PullPolicy pull = PullPolicy::kIfMissing;
  bool writable_root = false;             ///< else only volumes, /tmp and the like can be written
  bool new_privileges = false;            ///< set-user-id programs get what they say
  std::vector<std::string> capabilities;  ///< beside the few that are left: "SYS_PTRACE"
  int64_t shm_bytes = 0;                  ///< of /dev/shm; 0: as the engine has it

  bool operator==(const ContainerSpec&) const = default;
};

/// What is said to Slurm of a job, where it runs there, beside what is made of the rest of the
/// spec. Empty: nothing, and what Slurm does then holds.
struct SlurmSpec {
  std::string partition;  ///< in the place of the node pools: "gpu", or several: "gpu,long"
  std::string account;    ///< in the place of the project's
  std::string qos;
  std::string reservation;
  std::string constraint;  ///< features of nodes: "a100&nvlink"

  bool operator==(const SlurmSpec&) const = default;
};

/// What one task needs of a node. Zero means: no claim.
struct Resources {
  int gpus = 0;                  ///< whole ones; 0 where it asks for a part of one
  int gpu_share_milli = 0;       ///< 1 to 999: that part of one GPU, in thousandths
  int64_t gpu_memory_bytes = 0;  ///< or as much of one as has this memory
  int64_t cpu_milli = 0;         ///< thousandths of a CPU
  int64_t memory_bytes = 0;

  bool operator==(const Resources&) const = default;
};

/// What a job is for decides how important it is and whether it may be evicted, unless it says so
/// itself.
enum class Purpose {
  kTrain,      ///< runs unattended: may exceed the quota, and be evicted
  kBuild,      ///< somebody sits before it (--interactive): within the quota, never evicted
  kInference,  ///< others depend on it: as kBuild, and before it
};

std::string_view to_string(Purpose purpose);
std::optional<Purpose> purpose_of(std::string_view name);

/// How its tasks are laid out on nodes.
enum class Packing {
  kAuto,    ///< as the server is set up: where the least room is spoilt for others
  kPack,    ///< the fullest node that fits
  kSpread,  ///< the emptiest
};

std::string_view to_string(Packing packing);
std::optional<Packing> packing_of(std::string_view name);

/// How an elastic job takes it that workers come and go while it runs.
enum class Resize {
  kAuto,     ///< kLive where its command is made for it (launch/elastic.h), else kRestart
  kLive,     ///< it goes on with the workers that there are, and is told of each change
  kRestart,  ///< it shrinks by a restart with fewer, and grows only with its next restart
};

std::string_view to_string(Resize resize);
std::optional<Resize> resize_of(std::string_view name);

/// What to do when a task fails in a way that the rule describes; the first that matches counts.
struct RetryRule {
  enum class Action {
    kRetry,      ///< start again, at the cost of one retry
    kFail,       ///< do not, though there are retries left
    kAvoidNode,  ///< start again elsewhere: that node is not used for this job any more; costs no
                 ///< retry
  };
  std::optional<int> exit_code;  ///< of the task at fault, as a shell shows it (137: SIGKILL)
  std::string log_pattern;       ///< ECMAScript, found in its last lines; empty: any
  Action action = Action::kRetry;

  bool operator==(const RetryRule&) const = default;
};

std::string_view to_string(RetryRule::Action action);
std::optional<RetryRule::Action> retry_action_of(std::string_view name);

/// What decides when and where a job runs, beside what its tasks need.
struct Scheduling {
  Purpose purpose = Purpose::kTrain;
  std::optional<int> priority;          ///< 0 to 1000; nothing: 50, 75, 100 or 125 by purpose
  std::optional<bool> preemptible;      ///< nothing: below priority 100
  std::optional<int> min_workers;       ///< elastic: runs with so many of `workers`
  Resize resize = Resize::kAuto;        ///< where it is elastic
  std::vector<std::string> node_pools;  ///< tried in this order; empty: any the project has
  std::vector<std::string> gpu_models;  ///< any of these; empty: any
  Packing packing = Packing::kAuto;
  std::string required_topology;                        ///< a level, "rack": all tasks within one
  std::string preferred_topology;                       ///< within one if there is room
  std::optional<std::chrono::milliseconds> time_limit;  ///< it is ended then
  int retries = 0;  ///< how often it may start again after a fault of its own
  std::vector<RetryRule> retry_rules;

  bool operator==(const Scheduling&) const = default;
};

/// From this priority on a job is not preemptible, unless its spec says otherwise.
inline constexpr int kFirstNonPreemptiblePriority = 100;

/// What a job's priority and preemptibility come to: train 50, preemptible build 75, build 100,
/// inference 125.
int priority_of(const Scheduling& scheduling);
bool is_preemptible(const Scheduling& scheduling);

/// A secret of the project that the tasks of a job get.
struct SecretUse {
  std::string name;
  std::string variable;  ///< of the environment; empty: not there
  std::string file;      ///< below /generated/secrets; empty: not there

  bool operator==(const SecretUse&) const = default;
};

/// Something that tasks find at a path of theirs.
struct Volume {
  enum class Kind {
    kHostPath,   ///< `source`: a file or folder of the node
    kTree,       ///< `source`: the id of files that were sent (workspace/tree_store.h), of which
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

/// What the tasks of one role run and need, beside what the job says of its workers.
struct RoleSpec {
  std::string image;                               ///< empty: the job's
  std::string user;                                ///< where an image is given: as JobSpec::user
  RegistryLogin registry;                          ///< where an image is given
  std::vector<std::string> command;                ///< empty: the job's, with its arguments
  std::vector<std::string> arguments;              ///< where `command` is empty: behind the job's
  Resources resources;                             ///< none of the job's are taken over
  std::map<std::string, std::string> environment;  ///< on top of the job's

  bool operator==(const RoleSpec&) const = default;
};

struct JobSpec {
  std::string name;
  std::string project = "default";
  Kind kind = Kind::kSingle;
  /// What an image holds; an engine that runs none has a stand-in for it, or the machine's own
  /// files.
  std::string image;
  std::string user;        ///< "NAME-OR-NUMBER[:GROUP]" of the image; empty: whom the image says
  RegistryLogin registry;  ///< of `image`
  ContainerSpec container;
  SlurmSpec slurm;
  LaunchBy launch = LaunchBy::kAuto;  ///< kMpi
  /// argv: of the single task, of the launcher, or of every worker of a kGrpc or kTorch job. Empty:
  /// what the image runs.
  std::vector<std::string> command;
  std::vector<std::string> arguments;  ///< behind the command
  /// The command is run in the place of the image's entry point; else it is what that is given.
  bool replaces_entrypoint = true;
  int workers = 0;           ///< those beside the leader (launcher, chief, master); kSingle: 0
  int slots_per_worker = 1;  ///< ranks that a worker takes (hostfile slots)
  Resources resources;       ///< of each worker, or of the single task
  std::vector<std::string> worker_command;  ///< kMpi: what workers run beside answering ssh
  RoleSpec leader;       ///< of the launcher (without a command of its own), chief or master
  int leader_slots = 0;  ///< kMpi: ranks that the launcher takes; it is last in the hostfile
  bool allow_launcher_only = false;  ///< kMpi: may succeed though no worker ran anything
  int parameter_servers = 0;         ///< kGrpc
  RoleSpec parameter_server;
  int evaluators = 0;  ///< kGrpc: 0 or 1; what evaluates checkpoints beside the cluster
  RoleSpec evaluator;
  std::vector<Volume> volumes;
  bool held = false;      ///< waits for resume() from the beginning
  bool input = false;     ///< the leader's program reads what is typed to it (attach), else nothing
  bool terminal = false;  ///< it has a terminal: standard output and error are one
  /// How long it is kept after its end, with its logs and artifacts; nothing: as the server has it.
  std::optional<std::chrono::milliseconds> keep_for;
  std::map<std::string, std::string> labels;       ///< to select by; one without value is a tag
  std::map<std::string, std::string> annotations;  ///< kept for whoever submitted it
  Scheduling scheduling;
  std::map<std::string, std::string> environment;
  std::vector<SecretUse> secrets;  ///< their names alone: values come in when a gang starts
  std::string folder;              ///< working directory of every task, absolute
  Sandbox sandbox = Sandbox::kBubblewrap;
  std::chrono::milliseconds start_timeout{30'000};  ///< until every worker answers
  std::chrono::milliseconds grace{10'000};          ///< between SIGTERM and SIGKILL

  bool operator==(const JobSpec&) const = default;
};

// What a spec says of single roles, as a list: for whoever asks the same of each.
//
// Pure.

struct NamedRole {
  const char* field;  ///< of the spec: "parameter_server"
  const RoleSpec& role;
};

/// Of every kind of job; one that the spec says nothing of has all its defaults. `spec` must
/// outlive them.
inline std::array<NamedRole, 3> roles_of(const JobSpec& spec) {
  return {{{"leader", spec.leader},
           {"parameter_server", spec.parameter_server},
           {"evaluator", spec.evaluator}}};
}

/// Whether any task of the job is said to run in an image.
inline bool names_an_image(const JobSpec& spec) {
  const auto roles = roles_of(spec);
  return !spec.image.empty() || std::any_of(roles.begin(), roles.end(), [](const NamedRole& named) {
    return !named.role.image.empty();
  });
}

// What a job has of the shell that it was submitted from, without anybody having asked for it: a
// program that runs on the machine itself needs it to be found; in an image, which has a PATH, a
// home and a folder of its own, it would only be in the way.
//
// It is kept among the annotations of a job that names an image, for whoever starts the job knows
// best whether images are run. Pure.

/// Notes that these variables of the spec's environment, or its folder, are the shell's. Nothing
/// where no image is named.
void note_inherited(const std::set<std::string>& variables, bool folder, JobSpec& spec);

/// For a folder that is somebody's choice after all.
void forget_inherited_folder(JobSpec& spec);

std::set<std::string> inherited_variables(const JobSpec& spec);
bool inherits_folder(const JobSpec& spec);

}  // namespace muster::job
