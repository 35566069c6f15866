#include "dialects/runai/submission.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "dialects/runai/command_tree.h"
#include "dialects/runai/resources.h"
#include "dialects/runai/runai.h"
#include "dialects/runai/volumes.h"
#include "dialects/runai/words.h"
#include "job/spec.h"
#include "job/validate.h"
#include "record/input.h"

namespace muster::dialects::runai {

namespace {

constexpr int kUsualRetries = 6;
constexpr const char* kGiveACount = "write NAME=N";

const KnownKeys& keys_of_tolerations() {
  static const KnownKeys keys{.with_value = {"operator", "key", "value", "effect", "seconds"}};
  return keys;
}

job::Kind kind_of(const Words& path) {
  if (path.front() == "submit") return job::Kind::kSingle;
  if (path.back() == "pytorch") return job::Kind::kTorch;
  if (path.back() == "tf") return job::Kind::kGrpc;
  return job::Kind::kMpi;
}

std::string workload_of(job::Kind kind) {
  switch (kind) {
    case job::Kind::kSingle:
      return "train";
    case job::Kind::kMpi:
      return "mpi";
    case job::Kind::kTorch:
      return "pytorch";
    case job::Kind::kGrpc:
      return "tf";
  }
  return "";
}

/// The name that was used of a flag that also has a deprecated name.
const char* name_used(const char* flag, const char* deprecated, const cli::FlagReader& reader) {
  return reader.has(deprecated) && !reader.has(flag) ? deprecated : flag;
}

void read_name(const cli::Arguments& arguments, cli::FlagReader& reader, Submission& result) {
  std::string name = reader.text("--name");
  if (!arguments.names.empty()) {
    if (reader.has("--name")) {
      reader.fault("", "unexpected arguments [" + arguments.names.front() + "]");
    }
    name = arguments.names.front();
  }
  const bool is_named = !arguments.names.empty() || reader.has("--name");
  const std::string prefix = reader.text("--job-name-prefix", is_named ? "" : "job");
  if (is_named && reader.has("--job-name-prefix")) {
    reader.fault("--job-name-prefix", "cannot be used with a name; give only one");
  }
  result.spec.name = is_named ? name : "";
  result.name_prefix = is_named ? "" : prefix;
  check_name(is_named ? name : prefix, !is_named, reader);
}

/// The meaning of --command: absent; a switch ("true"), so that the words after "--" are the
/// command; or the command itself.
void read_program(const cli::Arguments& arguments, cli::FlagReader& reader, job::JobSpec& spec) {
  const std::string value = reader.text("--command", "false");
  const bool replaces = value == "true";
  const bool is_word = value != "true" && value != "false";
  const Words args = reader.texts("--args");
  if (is_word && value.find(' ') != std::string::npos) {
    reader.fault("--command",
                 "'" + value + "' is one word, but contains blanks; give: --command -- " + value);
  } else if (is_word && arguments.has_program) {
    reader.fault("--command",
                 "'" + value + "' and the words after '--' are both commands; give only one");
  } else if (replaces && arguments.program.empty() && args.empty()) {
    reader.fault("--command", "requires a command after '--'");
  }
  if (!args.empty() && arguments.has_program) {
    reader.fault("--args", "cannot be used with words after '--'; add the arguments there");
  }
  spec.replaces_entrypoint = is_word || replaces;
  if (is_word) spec.command = {value};
  Words& rest = is_word || replaces ? spec.command : spec.arguments;
  rest.insert(rest.end(), args.begin(), args.end());
  rest.insert(rest.end(), arguments.program.begin(), arguments.program.end());
}

void read_environment(cli::FlagReader& reader, const cli::Caller& caller, job::JobSpec& spec) {
  std::set<std::string> inherited;
  if (const auto home = caller.environment.find("HOME"); home != caller.environment.end()) {
    spec.environment.insert(*home);
    inherited.insert("HOME");
  }
  if (reader.has("--create-home-dir")) {
    constexpr const char* kHome = "/home/runai-home";
    spec.environment["HOME"] = kHome;
    inherited.clear();
    spec.volumes.push_back({.kind = job::Volume::Kind::kTree, .source = "", .target = kHome});
  }
  for (const auto& [name, value] :
       read_pairs("--environment", "give NAME=VALUE, as in -e NAME=\"$NAME\"", reader)) {
    spec.environment[name] = value;
    inherited.erase(name);
  }
  job::note_inherited(inherited, !reader.has("--working-dir"), spec);
}

std::string absolute(const std::string& folder, const cli::Caller& caller) {
  return plain_path((std::filesystem::path(caller.folder) / folder).string());
}

void read_retries(cli::FlagReader& reader, Submission& result) {
  const std::string flag = name_used("--backoff-limit", "--backoffLimit", reader);
  const int retries = reader.number(flag, kUsualRetries);
  const bool is_interactive = result.spec.scheduling.purpose == job::Purpose::kBuild;
  result.spec.scheduling.retries = is_interactive ? 0 : retries;
  if (is_interactive && retries != 0 && reader.has(flag)) {
    result.notes.push_back(flag + ": an interactive job is never retried");
  }
}

/// Several runs of one job, which Run:AI has for hyperparameter search.
void read_runs(cli::FlagReader& reader) {
  const int completions = reader.number("--completions", 1);
  const int parallelism = reader.number("--parallelism", 1);
  if (parallelism > 1 && !reader.has("--completions")) {
    reader.fault("--parallelism", "of more than 1 requires --completions");
  }
  if (reader.has("--elastic") && reader.has("--parallelism")) {
    reader.fault("--elastic", "cannot be used with --parallelism");
  }
  for (const auto& [flag, count] :
       {std::pair("--completions", completions), std::pair("--parallelism", parallelism)}) {
    if (count == 1 || reader.is_at_fault(flag)) continue;
    reader.fault(flag, "only 1 is supported; submit a job for each run");
  }
}

void read_purpose(cli::FlagReader& reader, Submission& result) {
  job::Scheduling& scheduling = result.spec.scheduling;
  const bool is_interactive = reader.has("--interactive");
  if (reader.has("--inference")) scheduling.purpose = job::Purpose::kInference;
  if (is_interactive) scheduling.purpose = job::Purpose::kBuild;
  if (is_interactive && reader.has("--inference")) {
    reader.fault("--inference", "cannot be used with --interactive");
  }
  if (!reader.has("--preemptible")) return;
  // A training job is preemptible anyway.
  const bool has_effect = scheduling.purpose != job::Purpose::kTrain;
  if (has_effect) scheduling.preemptible = true;
  result.notes.emplace_back(
      has_effect ? "--preemptible: the job may be evicted when other jobs need its resources"
                 : "--preemptible: has no effect: training jobs are always preemptible");
}

/// "topology.kubernetes.io/zone" -> "zone", a level of Muster's topology.
std::string level_of(const std::string& key) {
  const size_t slash = key.rfind('/');
  return slash == std::string::npos ? key : key.substr(slash + 1);
}

void read_placement(cli::FlagReader& reader, job::Scheduling& scheduling) {
  for (const std::string& name : base::split(reader.text("--node-pools"), ',')) {
    scheduling.node_pools.push_back(name);
  }
  scheduling.preferred_topology = level_of(reader.text("--preferred-pod-topology-key"));
  scheduling.required_topology = level_of(reader.text("--required-pod-topology-key"));
}

/// "operator=Exists,key=gpu,effect=NoSchedule": "gpu:NoSchedule". Faults of the flag were reported.
std::string toleration_in(const KeyValues& values) {
  const std::string key = value_of(values, "key");
  if (key.empty()) return "*";
  const std::string effect = value_of(values, "effect");
  const bool takes_every_value = value_of(values, "operator") == "Exists";
  return key + (takes_every_value ? "" : "=" + value_of(values, "value")) +
         (effect.empty() ? "" : ":" + effect);
}

void read_cluster_options(cli::FlagReader& reader, job::KubernetesSpec& options) {
  // Values at fault were reported by notes_of_idle_flags().
  if (!reader.is_at_fault("--toleration")) {
    for (const std::string& text : reader.texts("--toleration")) {
      options.tolerations.push_back(
          toleration_in(read_key_values("--toleration", text, keys_of_tolerations(), reader)));
    }
  }
  if (!reader.is_at_fault("--extended-resource")) {
    options.devices = read_pairs("--extended-resource", kGiveACount, reader);
  }
}

void read_git_sync(cli::FlagReader& reader, Submission& result) {
  const std::string flag = "--git-sync";
  if (!reader.has(flag)) return;
  const KeyValues values = read_key_values(
      flag, reader.text(flag),
      {.with_value = {"source", "branch", "rev", "username", "password", "target"}}, reader);
  const std::string source = value_of(values, "source");
  if (source.empty() && !reader.is_at_fault(flag)) {
    reader.fault("", "git sync must contain Repository");
  }
  const std::string rev = value_of(values, "rev");
  const std::string target = value_of(values, "target");
  result.git_target = plain_path(target.empty() ? "/code" : target);
  result.git_sync =
      cli::spec::WorkspaceOptions{.source = {.where = source,
                                             .ref = rev.empty() ? value_of(values, "branch") : rev,
                                             .username = value_of(values, "username"),
                                             .password = value_of(values, "password")},
                                  .ignore = {}};
  result.spec.volumes.push_back(
      {.kind = job::Volume::Kind::kTree, .source = "", .target = result.git_target});
}

void read_labels(cli::FlagReader& reader, job::JobSpec& spec) {
  for (const std::string& text : reader.texts("--label")) {
    const size_t equals = text.find('=');
    spec.labels[text.substr(0, equals)] =
        equals == std::string::npos ? "" : text.substr(equals + 1);
  }
  spec.annotations = read_pairs("--annotation", "give NAME=VALUE", reader);
}

void annotate(const cli::FlagReader& reader, const Words& words, job::JobSpec& spec) {
  spec.annotations[kCommandLine] = command_line_of(words);
  spec.annotations[kWorkload] = workload_of(spec.kind);
  if (reader.has("--user")) spec.annotations[kUser] = reader.text("--user");
}

/// `list` without the values of `keys`; the keys are kept: "source=x,password=".
std::string without_values(const std::string& list, const Words& keys) {
  std::string text;
  bool is_secret = false;
  for (const std::string& piece : base::split(list, ',')) {
    const size_t equals = piece.find('=');
    const std::string key = piece.substr(0, equals);
    // A piece without '=' continues the previous value, which contained a ','.
    if (equals != std::string::npos) {
      is_secret = std::find(keys.begin(), keys.end(), key) != keys.end();
    } else if (is_secret) {
      continue;
    }
    text += (text.empty() ? "" : ",") + (is_secret ? key + "=" : piece);
  }
  return text;
}

}  // namespace

std::string command_line_of(const std::vector<std::string>& words) {
  const std::array<std::pair<std::string, Words>, 2> secret{
      {{"--git-sync", {"password"}}, {"--s3", {"secret", "key"}}}};
  Words shown{"runai"};
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    for (const auto& [flag, keys] : secret) {
      const std::string start = flag + "=";
      if (i > 0 && words[i - 1] == flag) word = without_values(word, keys);
      if (word.starts_with(start)) {
        word = start + without_values(word.substr(start.size()), keys);
      }
    }
    shown.push_back(std::move(word));
  }
  return base::shell_joined(shown);
}

Submission read_submission(const cli::Arguments& arguments, cli::FlagReader& reader,
                           const cli::Caller& caller, const std::vector<std::string>& words,
                           bool on_kubernetes) {
  Submission result;
  job::JobSpec& spec = result.spec;
  spec.kind = kind_of(arguments.path);
  if (!caller.project.empty()) spec.project = caller.project;
  spec.project = reader.text("--project", spec.project);
  spec.image = reader.text("--image");
  if (spec.image.empty()) reader.fault("-i, --image", "must be set");
  spec.folder = absolute(reader.text("--working-dir"), caller);
  result.attach = reader.has("--attach");
  // Attaching requires that the program reads input.
  spec.input = result.attach || reader.has("--stdin");
  spec.terminal = result.attach || reader.has("--tty");
  spec.keep_for = keep_for_of(reader);
  result.dry_run = reader.has("--dry-run");
  result.notes = notes_of_idle_flags(reader, on_kubernetes);
  refuse_unserved_flags(reader);
  read_name(arguments, reader, result);
  read_program(arguments, reader, spec);
  read_labels(reader, spec);
  read_environment(reader, caller, spec);
  read_purpose(reader, result);
  read_retries(reader, result);
  read_runs(reader);
  read_placement(reader, spec.scheduling);
  read_container(reader, caller, spec);
  Claims claims = read_claims(reader, result.notes);
  spec.resources = claims.resources;
  spec.annotations.merge(claims.limits);
  read_workers(reader, arguments.path, spec);
  read_master(reader, spec);
  read_git_sync(reader, result);
  const AskedMounts mounts = read_volumes(reader, on_kubernetes, result.notes);
  const size_t own_volumes = spec.volumes.size();
  for (const AskedVolume& asked : mounts.volumes) spec.volumes.push_back(asked.volume);
  for (const AskedClaim& asked : mounts.claims) spec.kubernetes.claims.push_back(asked.claim);
  if (on_kubernetes) read_cluster_options(reader, spec.kubernetes);
  annotate(reader, words, spec);
  check_submission(result, arguments.path, mounts, own_volumes, reader);
  return result;
}

namespace {

constexpr size_t kLongestName = 48;

/// A field of a spec and the flag that sets it; the first match counts.
cli::FieldFlags flags_of_fields(const cli::FlagReader& reader) {
  return {{"name", "--name"},
          {"project", "--project"},
          {"image", "--image"},
          {"user", name_used("--run-as-user", "--run-as-uid", reader)},
          {"container.capabilities", "--add-capability"},
          {"container", "--image"},
          {"replaces_entrypoint", "--image"},
          {"command", "--command"},
          {"arguments", "--args"},
          {"slots_per_worker", "--slots-per-worker"},
          {"resources.gpus", "--gpu"},
          {"resources.gpu_share", "--gpu"},
          {"resources.gpu_memory", "--gpu-memory"},
          {"resources.cpus", "--cpu"},
          {"resources.memory", "--memory"},
          {"leader.resources.gpus", "--master-gpu"},
          {"leader.resources.gpu_share", "--master-gpu"},
          {"leader.environment", "--master-environment"},
          {"leader.command", "--command"},
          {"leader", "--master-args"},
          {"scheduling.min_workers", "--min-replicas"},
          {"scheduling.node_pools", "--node-pools"},
          {"scheduling.required_topology", "--required-pod-topology-key"},
          {"scheduling.preferred_topology", "--preferred-pod-topology-key"},
          {"scheduling.retries", name_used("--backoff-limit", "--backoffLimit", reader)},
          {"keep_for",
           name_used("--ttl-after-finish", "--auto-deletion-time-after-completion", reader)},
          {"kubernetes.tolerations", "--toleration"},
          {"kubernetes.devices", "--extended-resource"},
          {"environment", "--environment"},
          {"folder", "--working-dir"},
          {"labels", "--label"},
          {"annotations", "--annotation"}};
}

/// 2 in "volumes[2].target".
std::optional<size_t> index_in(std::string_view field, std::string_view list) {
  field.remove_prefix(std::min(field.size(), list.size() + 1));
  return base::number_of<size_t>(field.substr(0, field.find(']')));
}

/// The flag that set "volumes[2].target".
std::string flag_of_volume(std::string_view field, const std::vector<AskedVolume>& volumes,
                           size_t own_volumes, const cli::FlagReader& reader) {
  const auto index = index_in(field, "volumes");
  if (!index) return "--volume";
  if (*index >= own_volumes) return volumes[*index - own_volumes].flag;
  return reader.has("--git-sync") ? "--git-sync" : "--create-home-dir";
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && letter(text.front()) && text.back() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || digit(c) || c == '-'; });
}

}  // namespace

void check_name(const std::string& name, bool is_prefix, cli::FlagReader& reader) {
  if (!is_name(name)) {
    // Run:AI's message, including the two blanks.
    reader.fault("",
                 "Job names must consist of lower case alphanumeric characters or '-' and start "
                 "with an alphabetic character (e.g. 'my-name',  or 'abc-123')");
  }
  const size_t most = kLongestName - (is_prefix ? std::string_view("-999").size() : 0);
  if (name.size() <= most) return;
  reader.fault("", "The len " + std::to_string(name.size()) + " of name " + name +
                       " is too long, it should be less than " + std::to_string(most + 1));
}

void check_submission(const Submission& submission, const std::vector<std::string>& path,
                      const AskedMounts& mounts, size_t own_volumes, cli::FlagReader& reader) {
  const cli::FlagReader unread = reader;
  // The name was already checked, and the missing image already reported.
  job::JobSpec spec = named_after(submission.spec, "job");
  if (spec.image.empty()) spec.image = "image";
  for (const base::Fault& fault : job::validate(spec)) {
    std::string flag = cli::flag_of_field(fault.field, flags_of_fields(reader));
    if (fault.field == "workers") flag = workers_flag(reader, path);
    if (record::is_within(fault.field, "volumes")) {
      flag = flag_of_volume(fault.field, mounts.volumes, own_volumes, reader);
    }
    if (record::is_within(fault.field, "kubernetes.claims")) {
      const auto index = index_in(fault.field, "kubernetes.claims");
      flag = index ? mounts.claims.at(*index).flag : "--pvc";
    }
    // By default, the master has the claims of a worker.
    const bool is_a_repetition = record::is_within(fault.field, "leader.resources") &&
                                 (flag != "--master-gpu" || !reader.has(flag));
    // A variable without a value is not in the spec, so this fault is of another variable.
    const bool is_reported = unread.is_at_fault(flag) && flag != "--environment";
    if (!is_a_repetition && !is_reported) reader.fault(flag, fault.what);
  }
}

namespace {

struct Idle {
  const char* flag;
  const char* why;
};

constexpr auto kIdle = std::to_array<Idle>({
    {"--host-ipc", "every task has its own IPC namespace"},
    {"--host-network", "the server chooses the network of tasks"},
    {"--port", "no service is created; tasks listen on their machine"},
    {"--address", "no service is created; tasks listen on their machine"},
    {"--service-type", "no service is created; tasks listen on their machine"},
    {"--prevent-privilege-escalation", "tasks never gain privileges"},
    {"--master-extended-resource", "the master has those of --extended-resource"},
    {"--master-no-pvcs", "the master has all volumes of the job"},
    {"--elastic", "the job keeps the GPUs that it requests"},
});

void check_toleration(const std::string& text, cli::FlagReader& reader) {
  const std::string flag = "--toleration";
  const KeyValues values = read_key_values(flag, text, keys_of_tolerations(), reader);
  const std::string how = value_of(values, "operator");
  if (how != "Equal" && how != "Exists" && !reader.is_at_fault(flag)) {
    reader.fault(flag, "must contain operator=Equal or operator=Exists");
  }
  // Without a key, toleration_in() tolerates all taints.
  if (value_of(values, "key").empty() && !reader.is_at_fault(flag)) {
    if (how == "Equal") {
      reader.fault(flag, "operator=Equal requires key=");
    } else if (!value_of(values, "effect").empty()) {
      reader.fault(flag, "effect= requires key=; without both, all taints are tolerated");
    }
  }
  const std::string seconds = value_of(values, "seconds");
  if (!seconds.empty() && !base::number_of<int>(seconds)) {
    reader.fault(flag, "seconds: '" + seconds + "' is not a whole number");
  }
}

/// "8888", or "30000:8888".
bool is_port(const std::string& text) {
  const auto is_number = [](const std::string& part) {
    const auto number = base::number_of<int>(part);
    return number && *number > 0 && *number < 65536;
  };
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return is_number(text);
  return is_number(text.substr(0, colon)) && is_number(text.substr(colon + 1));
}

void check_choice(const std::string& flag, const std::vector<std::string>& choices,
                  cli::FlagReader& reader) {
  if (reader.has(flag)) reader.choice(flag, choices);
}

void check_values(cli::FlagReader& reader) {
  check_choice("--image-pull-policy", {"Always", "IfNotPresent", "Never"}, reader);
  check_choice("--service-type", {"portforward", "loadbalancer", "nodeport", "ingress"}, reader);
  check_choice("--clean-pod-policy", {"Running", "All", "None"}, reader);
  for (const cli::Flag& flag : common_flags()) {
    if (!flag.choices.empty()) check_choice(flag.name, flag.choices, reader);
  }
  for (const std::string& text : reader.texts("--toleration")) check_toleration(text, reader);
  for (const std::string& text : reader.texts("--port")) {
    if (!is_port(text)) reader.fault("--port", "'" + text + "' is neither PORT nor HOST:PORT");
  }
  read_pairs("--extended-resource", kGiveACount, reader);
  read_pairs("--master-extended-resource", kGiveACount, reader);
}

}  // namespace

std::vector<std::string> notes_of_idle_flags(cli::FlagReader& reader, bool on_kubernetes) {
  check_values(reader);
  std::vector<std::string> notes;
  for (const char* const flag : {"--toleration", "--extended-resource"}) {
    if (on_kubernetes || !reader.has(flag)) continue;
    notes.push_back(std::string(flag) +
                    ": applies only on Kubernetes; there, set MUSTER_ENGINE=kubernetes");
  }
  for (const Idle& idle : kIdle) {
    if (reader.has(idle.flag)) notes.push_back(std::string(idle.flag) + ": " + idle.why);
  }
  const std::string policy = reader.text("--clean-pod-policy", "Running");
  if (policy != "Running") {
    notes.push_back("--clean-pod-policy " + policy +
                    ": workers end with the job, which stays until 'runai delete'");
  }
  return notes;
}

void refuse_unserved_flags(cli::FlagReader& reader) {
  if (reader.has("--template")) {
    reader.fault("--template", "templates are not supported; give the values as flags");
  }
  if (reader.has("--node-type")) {
    reader.fault("--node-type",
                 "is not supported: nodes have no types; choose nodes with --node-pools");
  }
  if (reader.has("--jupyter")) {
    reader.fault("--jupyter",
                 "is not supported: ports of a job are not exposed; run the notebook with "
                 "--interactive and its command after '--'");
  }
  if (reader.has("--tty") && !reader.has("--stdin") && !reader.has("--attach")) {
    reader.fault("", "--stdin is required for containers with -t/--tty=true");
  }
}

}  // namespace muster::dialects::runai
