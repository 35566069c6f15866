#include "dialects/kubernetes/assembly.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/text.h"
#include "cli/spec/spec_file.h"
#include "cli/spec/spec_flags.h"
#include "config/yaml.h"
#include "dialects/kubernetes/program.h"
#include "job/validate.h"
#include "record/input.h"

namespace muster::dialects::kubernetes {

namespace {

constexpr int64_t kUsualGrace = 30;

void add_fault(const Place& place, std::string what, Findings& findings) {
  findings.faults.push_back({.field = place.path, .what = std::move(what), .line = place.line});
}

void add_warning(const Place& place, std::string what, Findings& findings) {
  findings.warnings.push_back({.field = place.path, .what = std::move(what), .line = place.line});
}

std::string random_suffix(base::RandomSource& random) {
  constexpr size_t kLength = 5;  // as the API server's
  return base::random_name(random, kLength);
}

}  // namespace

// --- metadata

Metadata read_metadata(Map& document, const TranslationOptions& options) {
  Metadata metadata;
  metadata.name = options.name;
  metadata.name_place = document.node().place();
  const auto node = document.require("metadata");
  if (!node) return metadata;
  Map map(*node);
  const auto name = map.take("name");
  const auto prefix = map.take("generateName");
  if (name) metadata.name_place = name->place();
  if (name) metadata.file_name = name->text().value_or("");
  if (metadata.name.empty()) metadata.name = metadata.file_name;
  if (!name && prefix) {
    metadata.name_place = prefix->place();
    const auto text = prefix->text();
    if (metadata.name.empty() && text) metadata.name = *text + random_suffix(options.random);
  }
  if (!name && !prefix && options.name.empty()) node->fault("has no name; give one, or use --name");
  if (const auto space = map.take("namespace")) {
    metadata.space = space->text().value_or("");
    if (!metadata.space.empty() && metadata.space != "default" &&
        metadata.space != options.defaults.project) {
      space->warning(
          "has no effect: the job is submitted to a project of Muster, which --set "
          "project=NAME chooses");
    }
  }
  if (const auto labels = map.take("labels")) {
    metadata.labels_place = labels->place();
    for (auto& [key, value] : labels->pairs()) {
      if (key == "kueue.x-k8s.io/queue-name") {
        metadata.queue = value;
        metadata.queue_place = {labels->place().path + "." + key, labels->place().line};
      } else if (key == "kueue.x-k8s.io/priority-class") {
        metadata.priority_class = value;
        metadata.priority_place = {labels->place().path + "." + key, labels->place().line};
      } else {
        metadata.labels[key] = value;
      }
    }
  }
  if (const auto annotations = map.take("annotations")) {
    metadata.annotations_place = annotations->place();
    for (auto& [key, value] : annotations->pairs()) {
      // kubectl's own copy of the file
      if (key == "kubectl.kubernetes.io/last-applied-configuration") continue;
      metadata.annotations[key] = value;
    }
  }
  map.skip({"creationTimestamp", "uid", "resourceVersion", "generation", "managedFields",
            "selfLink", "finalizers", "ownerReferences", "deletionTimestamp",
            "deletionGracePeriodSeconds"});
  map.end();
  return metadata;
}

namespace {

/// Of Kueue's label. As the priority class of pods, the API server would refuse the name.
void use_workload_priority(const std::string& name, const Place& place, Draft& draft,
                           Findings& findings) {
  if (const auto purpose = job::purpose_of(name)) {
    draft.spec.scheduling.purpose = *purpose;
    return;
  }
  add_warning(place,
              "'" + name +
                  "' names a WorkloadPriorityClass of Kueue, which Muster does not read; set the "
                  "priority with --set scheduling.priority=N",
              findings);
}

}  // namespace

Draft begin_draft(const Metadata& metadata, const TranslationOptions& options,
                  const Node& document) {
  Draft draft{.spec = options.defaults, .files = {}, .origins = {}, .place = document.place()};
  draft.spec.name = metadata.name;
  draft.spec.labels = metadata.labels;
  draft.spec.annotations = metadata.annotations;
  draft.origins["name"] = metadata.name_place;
  draft.origins["labels"] = metadata.labels_place;
  draft.origins["annotations"] = metadata.annotations_place;
  if (!metadata.queue.empty()) {
    use_queue(metadata.queue, metadata.queue_place, draft, document.findings());
  }
  if (!metadata.priority_class.empty()) {
    use_workload_priority(metadata.priority_class, metadata.priority_place, draft,
                          document.findings());
  }
  return draft;
}

void use_queue(const std::string& queue, const Place& place, Draft& draft, Findings& findings) {
  if (queue.empty()) return;
  const auto known = draft.origins.find("project");
  if (known != draft.origins.end() && draft.spec.project != queue) {
    return add_fault(place,
                     "names the queue '" + queue + "', but " + known->second.path + " names '" +
                         draft.spec.project + "'",
                     findings);
  }
  draft.spec.project = queue;
  draft.origins["project"] = place;
}

void use_priority_class(const std::string& name, const Place& place,
                        const TranslationOptions& options, Draft& draft, Findings& findings) {
  if (name.empty()) return;
  if (const auto purpose = job::purpose_of(name)) {
    draft.spec.scheduling.purpose = *purpose;
    return;
  }
  draft.spec.kubernetes.priority_class = name;
  if (options.on_kubernetes) return;
  add_warning(place,
              "priority class '" + name +
                  "' applies only on a server that runs jobs on Kubernetes; elsewhere the job has "
                  "the usual priority, unless --set scheduling.priority=N gives another",
              findings);
}

// --- roles

namespace {

/// A role of a job besides its workers.
struct OtherRole {
  const char* field;
  const Pod& pod;
  job::RoleSpec& spec;
};

class RoleAdding {
 public:
  RoleAdding(const Roles& roles, const std::set<std::string>& known_later,
             const TranslationOptions& options, Draft& draft, Findings& findings)
      : roles_(roles),
        known_later_(known_later),
        options_(options),
        draft_(draft),
        spec_(draft.spec),
        findings_(findings) {}

  void add() {
    list_others();
    add_base();
    for (const OtherRole& other : others_) add_other(other);
    add_folder();
    add_containers();
    add_mounts();
    add_scheduling();
    add_beside();
    note_inherited();
  }

 private:
  bool is_mpi() const { return spec_.kind == job::Kind::kMpi; }

  std::vector<const Pod*> pods() const {
    std::vector<const Pod*> pods{roles_.base};
    for (const OtherRole& other : others_) pods.push_back(&other.pod);
    return pods;
  }

  void list_others() {
    const auto list = [&](const char* field, const Pod* pod, job::RoleSpec& spec) {
      if (pod != nullptr) others_.push_back({.field = field, .pod = *pod, .spec = spec});
    };
    if (spec_.kind == job::Kind::kSingle) return;
    list("leader", roles_.leader, spec_.leader);
    list("parameter_server", roles_.parameter_server, spec_.parameter_server);
    list("evaluator", roles_.evaluator, spec_.evaluator);
  }

  Place part_of(const Pod& pod, const char* key) const {
    return {pod.container_place.path + "." + key, pod.container_place.line};
  }

  /// The places of the fields that a role and the job have in common. `prefix`: "leader."
  void note_origins(const std::string& prefix, const Pod& pod) {
    const auto note = [&](const char* field, const Place& place) {
      draft_.origins[prefix + field] = place;
    };
    note("image", part_of(pod, "image"));
    note("command", part_of(pod, "command"));
    note("arguments", part_of(pod, "args"));
    note("environment", part_of(pod, "env"));
    note("resources", part_of(pod, "resources"));
    note("user", part_of(pod, "securityContext.runAsUser"));
  }

  void add_base() {
    const Pod& pod = *roles_.base;
    base_ = program_of(pod, is_mpi() ? std::set<std::string>() : known_later_, findings_);
    note_origins("", pod);
    spec_.image = pod.image;
    spec_.user = pod.user;
    spec_.resources = pod.resources;
    for (const auto& [name, value] : base_.environment) spec_.environment[name] = value;
    add_secrets(base_, pod);
    draft_.origins["folder"] = pod.folder.empty() ? pod.container_place : pod.folder_place;
    draft_.origins["container"] = pod.container_place;
    draft_.origins["grace"] = pod.place;
    if (is_mpi()) return add_worker_command(pod);
    spec_.command = base_.command;
    spec_.arguments = base_.arguments;
  }

  /// The workers of Kubernetes start an sshd, which Muster starts itself.
  void add_worker_command(const Pod& pod) {
    std::vector<std::string> words = base_.command;
    words.insert(words.end(), base_.arguments.begin(), base_.arguments.end());
    draft_.origins["worker_command"] = part_of(pod, "command");
    if (words.empty() || is_plain_sshd(words) || only_waits(words)) return;
    const bool mentions_sshd = std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word.find("sshd") != std::string::npos || word.find("ssh start") != std::string::npos;
    });
    if (mentions_sshd) {
      return add_warning(part_of(pod, pod.command.empty() ? "args" : "command"),
                         "is not run: Muster starts the sshd of the workers itself", findings_);
    }
    if (base_.command.empty()) {
      return add_fault(part_of(pod, "args"),
                       "are arguments of the image's own program; give the workers a command",
                       findings_);
    }
    spec_.worker_command = std::move(words);
  }

  static bool is_plain_sshd(const std::vector<std::string>& words) {
    return words.front() == "sshd" || words.front().ends_with("/sshd");
  }

  static bool only_waits(const std::vector<std::string>& words) {
    std::string text = base::joined(words, " ");
    for (const char* const shell : {"sh -c ", "bash -c ", "/bin/sh -c ", "/bin/bash -c "}) {
      if (text.starts_with(shell)) text.erase(0, std::string(shell).size());
    }
    const std::string_view command = base::trimmed(text);
    if (command == "tail -f /dev/null") return true;
    constexpr std::string_view kSleep = "sleep ";
    return command.starts_with(kSleep) && is_duration(base::trimmed(command.substr(kSleep.size())));
  }

  /// One argument of sleep: "30", "1.5h" or "infinity". Commands may follow a sleep: "5; ./serve".
  static bool is_duration(std::string_view text) {
    if (text == "infinity" || text == "inf") return true;
    const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string_view unit = text.substr(digits);
    return digits > 0 && (unit.empty() || unit == "s" || unit == "m" || unit == "h" || unit == "d");
  }

  void add_other(const OtherRole& other) {
    const Program program = program_of(other.pod, known_later_, findings_);
    note_origins(std::string(other.field) + ".", other.pod);
    draft_.origins[other.field] = other.pod.container_place;
    other.spec.resources = other.pod.resources;
    if (other.pod.image != spec_.image || other.pod.user != spec_.user) {
      other.spec.image = other.pod.image;
      other.spec.user = other.pod.user;
    }
    add_environment(other, program);
    add_secrets(program, other.pod);
    if (is_mpi()) {
      // The launcher runs the job's command.
      spec_.command = program.command;
      spec_.arguments = program.arguments;
      draft_.origins["command"] = part_of(other.pod, "command");
      draft_.origins["arguments"] = part_of(other.pod, "args");
      return;
    }
    add_program(other, program);
  }

  void add_environment(const OtherRole& other, const Program& program) {
    for (const auto& [name, value] : program.environment) {
      const auto same = base_.environment.find(name);
      if (same == base_.environment.end() || same->second != value) {
        other.spec.environment[name] = value;
      }
    }
    for (const Variable& variable : roles_.base->environment) {
      if (!base_.environment.contains(variable.name) || is_set(variable.name, other.pod)) continue;
      add_warning(variable.place,
                  "is set in all tasks of the job, also in those of " + std::string(other.field),
                  findings_);
    }
  }

  static bool is_set(const std::string& name, const Pod& pod) {
    return std::any_of(pod.environment.begin(), pod.environment.end(),
                       [&](const Variable& one) { return one.name == name; });
  }

  void add_program(const OtherRole& other, const Program& program) {
    if (program.command == base_.command && program.arguments == base_.arguments) return;
    if (!program.command.empty()) {
      other.spec.command = program.command;
      other.spec.command.insert(other.spec.command.end(), program.arguments.begin(),
                                program.arguments.end());
      return;
    }
    if (!base_.command.empty()) {
      return add_fault(
          other.pod.container_place,
          "has no command, so it would run the command of the workers; give it a command",
          findings_);
    }
    const auto& base = base_.arguments;
    const auto& own = program.arguments;
    if (own.size() < base.size() || !std::equal(base.begin(), base.end(), own.begin())) {
      return add_fault(part_of(other.pod, "args"),
                       "differ from those of the workers, to which they could only be added; give "
                       "the container a command",
                       findings_);
    }
    other.spec.arguments.assign(own.begin() + static_cast<std::ptrdiff_t>(base.size()), own.end());
  }

  void add_secrets(const Program& program, const Pod& pod) {
    for (const job::SecretUse& use : program.secrets) {
      const bool is_known =
          std::find(spec_.secrets.begin(), spec_.secrets.end(), use) != spec_.secrets.end();
      if (is_known) continue;
      draft_.origins["secrets[" + std::to_string(spec_.secrets.size()) + "]"] = part_of(pod, "env");
      spec_.secrets.push_back(use);
      // The caller's shell may have a variable of this name.
      if (!base_.environment.contains(use.variable)) spec_.environment.erase(use.variable);
    }
  }

  void add_folder() {
    for (const Pod* pod : pods()) {
      if (pod->folder.empty()) continue;
      if (has_folder_ && spec_.folder != pod->folder) {
        add_fault(pod->folder_place,
                  "differs from '" + spec_.folder + "'; all tasks of a job work in one folder",
                  findings_);
      }
      if (!has_folder_) spec_.folder = pod->folder;
      has_folder_ = true;
    }
  }

  void add_containers() {
    job::ContainerSpec& all = spec_.container;
    all = roles_.base->container;
    for (const OtherRole& other : others_) {
      const job::ContainerSpec& own = other.pod.container;
      // The stricter way to pull is that which never runs an old image.
      if (own.pull == job::PullPolicy::kAlways) all.pull = own.pull;
      all.writable_root = all.writable_root || own.writable_root;
      all.new_privileges = all.new_privileges || own.new_privileges;
      all.shm_bytes = std::max(all.shm_bytes, own.shm_bytes);
      for (const std::string& name : own.capabilities) {
        const bool is_known = std::find(all.capabilities.begin(), all.capabilities.end(), name) !=
                              all.capabilities.end();
        if (!is_known) all.capabilities.push_back(name);
      }
    }
  }

  void add_mounts() {
    std::map<std::string, const Mount*> by_target;
    for (const Pod* pod : pods()) {
      for (const Mount& mount : pod->mounts) {
        const auto [known, is_new] = by_target.emplace(mount.volume.target, &mount);
        if (is_new) {
          add_mount(mount);
          continue;
        }
        const Mount& other = *known->second;
        const bool is_of_another_role = other.place.path != mount.place.path;
        // A role may be the same pod as another, or have the same volume.
        if (!is_of_another_role || (other.volume == mount.volume && other.files == mount.files)) {
          continue;
        }
        add_fault(mount.place,
                  "'" + mount.volume.target + "' is already the target of " + other.place.path +
                      "; all tasks of a job have the same volumes",
                  findings_);
      }
    }
  }

  void add_mount(const Mount& mount) {
    draft_.origins["volumes[" + std::to_string(spec_.volumes.size()) + "]"] = mount.place;
    spec_.volumes.push_back(mount.volume);
    if (!mount.files.empty()) draft_.files[mount.volume.target] = mount.files;
    const bool is_empty_folder = mount.volume.kind == job::Volume::Kind::kTree &&
                                 mount.files.empty() && !mount.volume.read_only;
    if (is_empty_folder && spec_.kind != job::Kind::kSingle) {
      add_warning(mount.place, "is one folder for all tasks of the job on the same machine",
                  findings_);
    }
  }

  void add_scheduling() {
    int64_t grace = 0;
    for (const Pod* pod : pods()) {
      grace = std::max(grace, pod->grace_seconds.value_or(kUsualGrace));
      agree(pod->node_pools, spec_.scheduling.node_pools, "node pools", *pod);
      agree(pod->gpu_models, spec_.scheduling.gpu_models, "GPU models", *pod);
      add_kubernetes(*pod);
      use_priority_class(pod->priority_class, pod->priority_place, options_, draft_, findings_);
    }
    spec_.grace = std::chrono::seconds(grace);
  }

  template <typename Values>
  static void add_missing(const Values& own, Values& all) {
    for (const auto& value : own) {
      if (std::find(all.begin(), all.end(), value) == all.end()) all.insert(all.end(), value);
    }
  }

  /// The settings that apply only on Kubernetes, to the pods of all tasks.
  void add_kubernetes(const Pod& pod) {
    const job::KubernetesSpec& own = pod.kubernetes;
    job::KubernetesSpec& all = spec_.kubernetes;
    draft_.origins["kubernetes"] = pod.place;
    for (const auto& [label, value] : own.node_selector) {
      const auto [known, is_new] = all.node_selector.emplace(label, value);
      if (is_new || known->second == value) continue;
      add_fault({pod.place.path + ".nodeSelector", pod.place.line},
                "names another '" + label + "' than another role; a job has one choice", findings_);
    }
    add_missing(own.tolerations, all.tolerations);
    add_missing(own.image_pull_secrets, all.image_pull_secrets);
    add_missing(own.claims, all.claims);
    add_missing(own.devices, all.devices);
    add_missing(own.labels, all.labels);
    add_missing(own.annotations, all.annotations);
    if (all.service_account.empty()) all.service_account = own.service_account;
    if (all.runtime_class.empty()) all.runtime_class = own.runtime_class;
  }

  using Of = job::PodContainer::Of;

  /// The pods of the job, each with the tasks that it is for.
  std::vector<std::pair<Of, const Pod*>> pods_by_task() const {
    const Pod* const leader = roles_.leader == nullptr ? roles_.base : roles_.leader;
    std::vector<std::pair<Of, const Pod*>> pods{{Of::kLeader, leader}};
    if (spec_.kind != job::Kind::kSingle) pods.emplace_back(Of::kWorkers, roles_.base);
    for (const OtherRole& other : others_) {
      if (&other.spec == &spec_.parameter_server)
        pods.emplace_back(Of::kParameterServers, &other.pod);
      if (&other.spec == &spec_.evaluator) pods.emplace_back(Of::kEvaluators, &other.pod);
    }
    return pods;
  }

  static std::vector<job::PodContainer> containers_of(const Pod& pod, Of of) {
    std::vector<job::PodContainer> containers;
    for (const BesideContainer& beside : pod.beside) {
      containers.push_back(beside.container);
      containers.back().of = of;
    }
    return containers;
  }

  /// Init containers and sidecars: once, if all pods have the same.
  void add_beside() {
    const auto pods = pods_by_task();
    const bool are_same = std::all_of(pods.begin(), pods.end(), [&](const auto& each) {
      return containers_of(*each.second, Of::kAll) == containers_of(*pods.front().second, Of::kAll);
    });
    for (const auto& [of, pod] : pods) {
      auto& all = spec_.kubernetes.containers;
      for (const BesideContainer& beside : pod->beside) {
        draft_.origins["kubernetes.containers[" + std::to_string(all.size()) + "]"] = beside.place;
        all.push_back(beside.container);
        all.back().of = are_same ? Of::kAll : of;
      }
      if (are_same) return;
    }
  }

  void agree(const std::vector<std::string>& own, std::vector<std::string>& all, const char* what,
             const Pod& pod) {
    if (own.empty() || own == all) return;
    if (!all.empty()) {
      add_fault({pod.place.path + ".nodeSelector", pod.place.line},
                std::string("names other ") + what + " than another role; a job has one choice",
                findings_);
    }
    all = own;
  }

  /// Values from the caller's shell are not used in an image. Neither are the variables that let Open
  /// MPI run as root: an engine that runs no images runs mpirun as the caller, and not as the
  /// image's user.
  void note_inherited() {
    std::set<std::string> names;
    for (const auto& [name, value] : options_.defaults.environment) {
      if (!base_.environment.contains(name)) names.insert(name);
    }
    if (options_.is_root && is_mpi()) {
      const std::map<std::string, std::string> before = spec_.environment;
      cli::spec::let_root_run_open_mpi(spec_);
      for (const auto& [name, value] : spec_.environment) {
        if (!before.contains(name)) names.insert(name);
      }
    }
    job::note_inherited(names, !has_folder_, spec_);
  }

  const Roles& roles_;
  const std::set<std::string>& known_later_;
  const TranslationOptions& options_;
  Draft& draft_;
  job::JobSpec& spec_;
  Findings& findings_;
  std::vector<OtherRole> others_;
  Program base_;
  bool has_folder_ = false;
};

}  // namespace

void add_roles(const Roles& roles, const std::set<std::string>& known_later,
               const TranslationOptions& options, Draft& draft, Findings& findings) {
  RoleAdding(roles, known_later, options, draft, findings).add();
}

// --- the end

namespace {

/// The place of a field, or of the record around it.
Place origin_of(std::string field, const Draft& draft) {
  while (true) {
    const auto found = draft.origins.find(field);
    if (found != draft.origins.end() && !found->second.path.empty()) return found->second;
    const size_t part = field.find_last_of(".[");
    if (part == std::string::npos) return draft.place;
    field.resize(part);
  }
}

/// Whether a fault at `path` may follow from one that is known: a field that could not be read has its
/// default.
bool may_follow(const std::string& path, const std::vector<base::Fault>& known) {
  return std::any_of(known.begin(), known.end(), [&](const base::Fault& fault) {
    return record::is_within(path, fault.field) || record::is_within(fault.field, path);
  });
}

}  // namespace

void finish_draft(const TranslationOptions& options, Draft& draft, Findings& findings) {
  const std::set<std::string> flagged =
      options.flags ? options.flags(draft.spec) : std::set<std::string>{};
  auto read = cli::spec::apply_settings(options.settings, draft.spec);
  read.keys.insert(flagged.begin(), flagged.end());
  for (const base::Fault& fault : read.faults) findings.faults.push_back(fault);
  if (read.keys.contains("folder")) job::forget_inherited_folder(draft.spec);
  const std::vector<base::Fault> known = findings.faults;
  for (const base::Fault& fault : job::validate(draft.spec)) {
    if (read.keys.contains(fault.field)) {
      findings.faults.push_back(fault);
      continue;
    }
    const Place place = origin_of(fault.field, draft);
    const bool is_vague = place.path.empty() || place.path == draft.place.path;
    if (!known.empty() && (is_vague || may_follow(place.path, known))) continue;
    findings.faults.push_back(
        {.field = is_vague ? fault.field : place.path, .what = fault.what, .line = place.line});
  }
}

}  // namespace muster::dialects::kubernetes
