#include "job/spec.h"

#include <array>

#include "base/text.h"
#include "job/spec_table.h"

namespace muster::job {

namespace {

constexpr const char* kVariables = "muster/inherited-variables";
constexpr const char* kFolder = "muster/inherited-folder";

}  // namespace

void note_inherited(const std::set<std::string>& variables, bool folder, JobSpec& spec) {
  if (!names_an_image(spec)) return;
  const std::string names = base::joined(variables, " ");
  if (!names.empty()) spec.annotations[kVariables] = names;
  if (folder) spec.annotations[kFolder] = spec.folder;
}

void forget_inherited_folder(JobSpec& spec) {
  spec.annotations.erase(kFolder);
}

std::set<std::string> inherited_variables(const JobSpec& spec) {
  const auto found = spec.annotations.find(kVariables);
  if (found == spec.annotations.end()) return {};
  const auto names = base::split(found->second, ' ');
  return {names.begin(), names.end()};
}

bool inherits_folder(const JobSpec& spec) {
  const auto found = spec.annotations.find(kFolder);
  // If a copied spec was changed, the annotation may name another folder.
  return found != spec.annotations.end() && found->second == spec.folder;
}

// The names of a spec's enumerations, for JSON, job files and flags.

using record::meant_by;
using record::Named;
using record::word_for;

namespace {

constexpr std::array<Named<Kind>, 4> kKindWords{{{Kind::kSingle, "single"},
                                                 {Kind::kMpi, "mpi"},
                                                 {Kind::kGrpc, "grpc"},
                                                 {Kind::kTorch, "torch"}}};

constexpr std::array<Named<Sandbox>, 2> kSandboxWords{
    {{Sandbox::kBubblewrap, "bubblewrap"}, {Sandbox::kNone, "none"}}};

constexpr std::array<Named<Volume::Kind>, 4> kVolumeKindWords{
    {{Volume::Kind::kHostPath, "host_path"},
     {Volume::Kind::kTree, "tree"},
     {Volume::Kind::kStorage, "storage"},
     {Volume::Kind::kArtifacts, "artifacts"}}};

constexpr std::array<Named<LaunchBy>, 4> kLaunchWords{{{LaunchBy::kAuto, "auto"},
                                                       {LaunchBy::kSsh, "ssh"},
                                                       {LaunchBy::kAgent, "agent"},
                                                       {LaunchBy::kSrun, "srun"}}};

constexpr std::array<Named<PullPolicy>, 3> kPullWords{{{PullPolicy::kIfMissing, "if-missing"},
                                                       {PullPolicy::kAlways, "always"},
                                                       {PullPolicy::kNever, "never"}}};
/// The names in Kubernetes.
constexpr std::array<Named<PullPolicy>, 3> kPullAliases{{{PullPolicy::kIfMissing, "IfNotPresent"},
                                                         {PullPolicy::kAlways, "Always"},
                                                         {PullPolicy::kNever, "Never"}}};

constexpr std::array<Named<Purpose>, 3> kPurposeWords{
    {{Purpose::kTrain, "train"}, {Purpose::kBuild, "build"}, {Purpose::kInference, "inference"}}};

constexpr std::array<Named<Resize>, 3> kResizeWords{
    {{Resize::kAuto, "auto"}, {Resize::kLive, "live"}, {Resize::kRestart, "restart"}}};

constexpr std::array<Named<Packing>, 3> kPackingWords{
    {{Packing::kAuto, "auto"}, {Packing::kPack, "pack"}, {Packing::kSpread, "spread"}}};

constexpr std::array<Named<Success>, 2> kSuccessWords{
    {{Success::kLeader, "leader"}, {Success::kAll, "all"}}};

constexpr std::array<Named<Dependency::Condition>, 3> kConditionWords{
    {{Dependency::Condition::kOk, "ok"},
     {Dependency::Condition::kAny, "any"},
     {Dependency::Condition::kFailed, "failed"}}};

constexpr std::array<Named<RetryRule::Action>, 3> kActionWords{
    {{RetryRule::Action::kRetry, "retry"},
     {RetryRule::Action::kFail, "fail"},
     {RetryRule::Action::kAvoidNode, "avoid-node"}}};

}  // namespace

record::Words<Kind> words_of(const Kind*) {
  return {.schema = "Kind",
          .values = kKindWords,
          .help =
              "How the tasks of a job find each other: `single` is one task that runs the command; "
              "`mpi` is a launcher that runs the command, and workers that it reaches by ssh; "
              "`grpc` is a TensorFlow cluster: a chief, workers and parameter servers, each of "
              "which runs the command; `torch` is a master and workers, each of which runs the "
              "command with its rank and the master's address."};
}
record::Words<Sandbox> words_of(const Sandbox*) {
  return {.schema = "Sandbox",
          .values = kSandboxWords,
          .help = "`bubblewrap`: each task has its own host name, process tree and /generated."};
}
record::Words<Volume::Kind> words_of(const Volume::Kind*) {
  return {.schema = "VolumeKind", .values = kVolumeKindWords, .help = "Where a volume comes from."};
}
record::Words<LaunchBy> words_of(const LaunchBy*) {
  return {
      .schema = "LaunchBy",
      .values = kLaunchWords,
      .help =
          "How a launcher reaches the workers that it starts ranks in. `ssh`: by ssh, and an sshd "
          "in each worker. `agent`: by Muster's own remote shell; an image needs only its MPI. "
          "`srun`: Slurm's srun starts the ranks, and MPI uses PMIx; only if the server runs jobs "
          "on Slurm. `auto`: by ssh if the images have sshd and ssh, otherwise `agent`."};
}
record::Words<PullPolicy> words_of(const PullPolicy*) {
  return {.schema = "PullPolicy",
          .values = kPullWords,
          .aliases = kPullAliases,
          .help = "When an image is pulled: if the host lacks it, at each start, or never."};
}
record::Words<Purpose> words_of(const Purpose*) {
  return {.schema = "Purpose",
          .values = kPurposeWords,
          .help = "The purpose of a job sets its default priority, and whether it may be evicted."};
}
record::Words<Packing> words_of(const Packing*) {
  return {.schema = "Packing",
          .values = kPackingWords,
          .help = "How tasks are distributed over nodes."};
}
record::Words<Resize> words_of(const Resize*) {
  return {.schema = "Resize",
          .values = kResizeWords,
          .help =
              "How an elastic job handles workers that join and leave while it runs: it continues "
              "with the present workers (`live`), or is restarted (`restart`). `auto`: `live` if "
              "its command supports it (torchrun; an MPI program that calls discover_hosts.sh), "
              "otherwise `restart`."};
}
record::Words<Success> words_of(const Success*) {
  return {.schema = "Success",
          .values = kSuccessWords,
          .help =
              "Which tasks must succeed: the chief or master (`leader`), after which the workers "
              "have two seconds to end; or it and every worker (`all`)."};
}
record::Words<Dependency::Condition> words_of(const Dependency::Condition*) {
  return {.schema = "DependencyCondition",
          .values = kConditionWords,
          .help =
              "How the other job must have ended: it succeeded (`ok`), it ended (`any`), or it "
              "failed or was stopped (`failed`)."};
}
record::Words<RetryRule::Action> words_of(const RetryRule::Action*) {
  return {.schema = "RetryAction", .values = kActionWords};
}

std::string_view to_string(Kind kind) {
  return word_for(kind);
}
std::optional<Kind> kind_of(std::string_view name) {
  return meant_by<Kind>(name);
}
std::string_view to_string(Sandbox sandbox) {
  return word_for(sandbox);
}
std::optional<Sandbox> sandbox_of(std::string_view name) {
  return meant_by<Sandbox>(name);
}
std::string_view to_string(Volume::Kind kind) {
  return word_for(kind);
}
std::optional<Volume::Kind> volume_kind_of(std::string_view name) {
  return meant_by<Volume::Kind>(name);
}
std::string_view to_string(LaunchBy launch) {
  return word_for(launch);
}
std::optional<LaunchBy> launch_by_of(std::string_view name) {
  return meant_by<LaunchBy>(name);
}
std::string_view to_string(PullPolicy policy) {
  return word_for(policy);
}
std::optional<PullPolicy> pull_policy_of(std::string_view name) {
  return meant_by<PullPolicy>(name);
}
std::string_view to_string(Purpose purpose) {
  return word_for(purpose);
}
std::optional<Purpose> purpose_of(std::string_view name) {
  return meant_by<Purpose>(name);
}
std::string_view to_string(Resize resize) {
  return word_for(resize);
}
std::optional<Resize> resize_of(std::string_view name) {
  return meant_by<Resize>(name);
}
std::string_view to_string(Packing packing) {
  return word_for(packing);
}
std::optional<Packing> packing_of(std::string_view name) {
  return meant_by<Packing>(name);
}
std::string_view to_string(Success success) {
  return word_for(success);
}
std::optional<Success> success_of(std::string_view name) {
  return meant_by<Success>(name);
}
std::string_view to_string(Dependency::Condition condition) {
  return word_for(condition);
}
std::optional<Dependency::Condition> dependency_condition_of(std::string_view name) {
  return meant_by<Dependency::Condition>(name);
}
std::string_view to_string(RetryRule::Action action) {
  return word_for(action);
}
std::optional<RetryRule::Action> retry_action_of(std::string_view name) {
  return meant_by<RetryRule::Action>(name);
}

}  // namespace muster::job
