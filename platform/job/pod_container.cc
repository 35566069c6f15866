#include "job/pod_container.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "job/checker.h"
#include "job/container.h"
#include "job/kubernetes.h"
#include "job/spec_table.h"
#include "job/validate.h"
#include "record/field.h"

namespace muster::job {

using record::As;
using record::field;
using record::Named;
using record::Need;
using record::Table;

namespace {

using Of = PodContainer::Of;
using PodRuns = PodContainer::Runs;

constexpr std::array<Named<PodRuns>, 2> kRunsWords{
    {{PodRuns::kBefore, "before"}, {PodRuns::kBeside, "beside"}}};

constexpr std::array<Named<Of>, 5> kOfWords{{{Of::kAll, "all"},
                                             {Of::kLeader, "leader"},
                                             {Of::kWorkers, "workers"},
                                             {Of::kParameterServers, "parameter_servers"},
                                             {Of::kEvaluators, "evaluators"}}};

Of group_of(TaskRole role) {
  switch (role) {
    case TaskRole::kLauncher:
    case TaskRole::kChief:
    case TaskRole::kMaster:
    case TaskRole::kSingle:
      return Of::kLeader;
    case TaskRole::kParameterServer:
      return Of::kParameterServers;
    case TaskRole::kEvaluator:
      return Of::kEvaluators;
    case TaskRole::kWorker:
      break;
  }
  return Of::kWorkers;
}

bool is_absolute(std::string_view path) {
  // No path in a pod contains ':'.
  return path.size() > 1 && path.starts_with('/') && !has_nul(path) &&
         path.find(':') == std::string_view::npos && has_plain_parts(path.substr(1));
}

bool lies_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// "UID[:GID]"
bool is_account_number(std::string_view text) {
  const auto numbers = base::split(text, ':');
  return numbers.size() <= 2 &&
         std::all_of(numbers.begin(), numbers.end(), [](const std::string& number) {
           return base::number_of<uint32_t>(number).has_value();
         });
}

/// Muster's own containers have these names.
bool is_taken_name(std::string_view name) {
  return name == "task" || name == "muster";
}

class ContainerCheck {
 public:
  ContainerCheck(const JobSpec& spec, const PodContainer& container, std::string field,
                 Checker& check)
      : spec_(spec), container_(container), field_(std::move(field)), check_(check) {}

  void check() {
    check_name();
    check_program();
    check_.require_milli(container_.cpu_milli, 0, kMaxCpuMilli, field_ + ".cpus");
    check_.require_memory(container_.memory_bytes, field_ + ".memory");
    for (size_t i = 0; i < container_.mounts.size(); ++i) check_mount(i);
  }

 private:
  void require(bool holds, const std::string& key, std::string what) {
    check_.require(holds, field_ + "." + key, std::move(what));
  }

  void check_name() {
    constexpr size_t kLongest = 63;
    const std::string& name = container_.name;
    require(is_dns_label(name, kLongest), "name",
            in_quotes(name) + " is not a name: use lower-case letters, digits and '-', at most 63");
    require(!is_taken_name(name), "name", in_quotes(name) + " is a container of Muster");
  }

  void check_program() {
    const std::string& image = container_.image;
    const std::string fault = image.empty() ? "" : fault_of_image_name(image);
    require(!image.empty(), "image", "is missing");
    require(fault.empty(), "image", in_quotes(image) + " " + fault);
    require(container_.folder.empty() || is_absolute(container_.folder), "folder",
            in_quotes(container_.folder) + " is not an absolute path");
    require(container_.user.empty() || is_account_number(container_.user), "user",
            in_quotes(container_.user) + " is not UID[:GID], as in 1000:1000");
    for (const auto* const words : {&container_.command, &container_.arguments}) {
      const std::string key = words == &container_.command ? "command" : "arguments";
      const bool has_none = std::none_of(words->begin(), words->end(),
                                         [](const std::string& word) { return has_nul(word); });
      require(has_none, key, "has a word that contains a NUL character");
      size_t longest = 0;
      for (const std::string& word : *words) longest = std::max(longest, word.size());
      require(longest <= kLongestWord, key,
              "has a word of " + std::to_string(longest) +
                  " bytes; an argument of a program has at most " + std::to_string(kLongestWord) +
                  ": put the rest in a file");
    }
    for (const auto& [name, value] : container_.environment) {
      const size_t size = name.size() + 1 + value.size();
      const bool is_name = !name.empty() && name.find('=') == std::string::npos && !has_nul(name);
      if (is_name && !has_nul(value) && size <= kLongestWord) continue;
      if (check_.has_all_faults()) return;
      require(is_name, "environment", in_quotes(name) + " is not the name of a variable");
      require(!has_nul(value), "environment." + name, "contains a NUL character");
      require(size <= kLongestWord, "environment." + base::as_utf8(name.substr(0, 100)),
              "is " + std::to_string(size) + " bytes long with its name; a variable has at most " +
                  std::to_string(kLongestWord) + ": put the value in a file");
    }
  }

  void check_mount(size_t index) {
    const std::string& text = container_.mounts[index];
    const std::string key = "mounts[" + std::to_string(index) + "]";
    const auto mount = pod_container_mount_of(text);
    require(mount.has_value(), key,
            in_quotes(text) + " is not PATH[:OWN][:ro], as in /data or /data/raw:/in:ro");
    if (!mount) return;
    const std::string target =
        volume_target_of(mount->path, spec_.volumes, spec_.kubernetes.claims);
    require(!target.empty(), key, in_quotes(mount->path) + " is not in a volume of the task");
    const auto tree =
        std::find_if(spec_.volumes.begin(), spec_.volumes.end(), [&](const Volume& volume) {
          return volume.kind == Volume::Kind::kTree && !volume.source.empty() &&
                 without_slash(volume.target) == target;
        });
    require(tree == spec_.volumes.end(), key,
            in_quotes(target) +
                " has files that the job brings along, which only the task gets, when it starts");
  }

  const JobSpec& spec_;
  const PodContainer& container_;
  const std::string field_;
  Checker& check_;
};

bool share_pods(Of one, Of other) {
  return one == other || one == Of::kAll || other == Of::kAll;
}

}  // namespace

record::Words<PodRuns> words_of(const PodRuns*) {
  return {.schema = "PodContainerRuns",
          .values = kRunsWords,
          .help =
              "`before`: it ends before the task starts. `beside`: it runs until the task has "
              "ended."};
}

record::Words<Of> words_of(const Of*) {
  return {.schema = "PodContainerOf",
          .values = kOfWords,
          .help = "The tasks whose pods have the container. The only task of a job is its leader."};
}

const Table& table_of(const PodContainer*) {
  static const Table table = record::table<PodContainer>(
      "PodContainer",
      {field<&PodContainer::name>("name", {.need = Need::kRequired, .max_length = 63}),
       field<&PodContainer::runs>("runs"), field<&PodContainer::of>("of"),
       field<&PodContainer::image>("image", {.need = Need::kRequired}),
       field<&PodContainer::pull>("pull"),
       field<&PodContainer::command>("command", {.help = "Empty: the entry point of the image."},
                                     As::kText),
       field<&PodContainer::arguments>("arguments", {}, As::kText),
       field<&PodContainer::environment>("environment", {}, As::kText),
       field<&PodContainer::folder>("folder", {.help = "Empty: the folder of the image."}),
       field<&PodContainer::user>("user", {.help = "`UID[:GID]`; empty: that of the task."}),
       field<&PodContainer::cpu_milli>(
           "cpus", {.schema = R"({"minimum": 0, "maximum": 65536, "multipleOf": 0.001})"},
           As::kCpus),
       field<&PodContainer::memory_bytes>("memory", {.least = 0, .most = kMaxMemory}, As::kBytes),
       field<&PodContainer::mounts>(
           "mounts", {.help = "`PATH[:OWN][:ro]`: what the task has at `PATH` in one of its "
                              "volumes, the container has at `OWN`.",
                      .most_items = 100})},
      "A container beside the program of a task, in the same pod of Kubernetes: an init container "
      "or a sidecar.");
  return table;
}

std::optional<PodContainerMount> pod_container_mount_of(std::string_view text) {
  PodContainerMount mount;
  if (text.ends_with(":ro")) {
    mount.read_only = true;
    text.remove_suffix(3);
  }
  const size_t colon = text.find(":/");
  mount.path = text.substr(0, colon);
  mount.own_path = colon == std::string_view::npos ? mount.path : text.substr(colon + 1);
  if (!is_absolute(mount.path) || !is_absolute(mount.own_path)) return std::nullopt;
  return mount;
}

std::string volume_target_of(const std::string& path, const std::vector<Volume>& volumes,
                             const std::vector<std::string>& claims) {
  std::set<std::string> targets{std::string(kSharedMemoryFolder)};
  for (const Volume& volume : volumes) targets.insert(without_slash(volume.target));
  for (const std::string& text : claims) {
    if (const auto claim = claim_of(text)) targets.insert(claim->path);
  }
  std::string longest;
  for (const std::string& target : targets) {
    if (lies_below(path, target) && target.size() > longest.size()) longest = target;
  }
  return longest;
}

std::vector<PodContainer> pod_containers_of(const JobSpec& spec, TaskRole role) {
  std::vector<PodContainer> all;
  for (const PodContainer& container : spec.kubernetes.containers) {
    if (container.of == Of::kAll || container.of == group_of(role)) all.push_back(container);
  }
  return all;
}

Resources claimed_by(const JobSpec& spec, TaskRole role) {
  Resources claim = resources_of(spec, role);
  Resources before;  // the largest sum of an init container and the sidecars started before it
  Resources sidecars;
  for (const PodContainer& container : pod_containers_of(spec, role)) {
    if (container.runs == PodRuns::kBeside) {
      sidecars.cpu_milli += container.cpu_milli;
      sidecars.memory_bytes += container.memory_bytes;
      continue;
    }
    before.cpu_milli = std::max(before.cpu_milli, sidecars.cpu_milli + container.cpu_milli);
    before.memory_bytes =
        std::max(before.memory_bytes, sidecars.memory_bytes + container.memory_bytes);
  }
  claim.cpu_milli = std::max(claim.cpu_milli + sidecars.cpu_milli, before.cpu_milli);
  claim.memory_bytes = std::max(claim.memory_bytes + sidecars.memory_bytes, before.memory_bytes);
  return claim;
}

void check_pod_containers(const JobSpec& spec, Checker& check) {
  constexpr size_t kMost = 32;
  const auto& containers = spec.kubernetes.containers;
  const std::string list = "kubernetes.containers";
  if (containers.size() > kMost) {
    return check.require(false, list, "has more than " + std::to_string(kMost) + " entries");
  }
  for (size_t i = 0; i < containers.size(); ++i) {
    const std::string field = list + "[" + std::to_string(i) + "]";
    ContainerCheck(spec, containers[i], field, check).check();
    const bool is_new = std::none_of(containers.begin(), containers.begin() + static_cast<int>(i),
                                     [&](const PodContainer& earlier) {
                                       return earlier.name == containers[i].name &&
                                              share_pods(earlier.of, containers[i].of);
                                     });
    check.require(is_new, field + ".name", in_quotes(containers[i].name) + " is given twice");
  }
  int64_t memory = 0;
  for (const PodContainer& each : containers) {
    memory += std::clamp<int64_t>(each.memory_bytes, 0, kMaxMemory);
  }
  check.require(memory <= kMaxMemory, list,
                "have " + base::format_bytes(memory) + " of memory together; give at most " +
                    base::format_bytes(kMaxMemory));
}

}  // namespace muster::job
