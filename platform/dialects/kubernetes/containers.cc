// The containers of a pod: the one that runs the task's program, and the init containers and sidecars
// beside it, which only a server that runs jobs on Kubernetes runs.
#include <algorithm>
#include <set>
#include <utility>

#include "dialects/kubernetes/pod.h"
#include "dialects/kubernetes/program.h"

namespace muster::dialects::kubernetes {

namespace {

std::vector<Word> words_of(const std::optional<Node>& list) {
  std::vector<Word> words;
  if (!list) return words;
  for (const Node& element : list->elements()) {
    if (auto text = element.text()) words.push_back({.text = *text, .place = element.place()});
  }
  return words;
}

/// Kubernetes pulls images without a tag, and those with the tag "latest", at each start.
job::PullPolicy usual_pull(const std::string& image) {
  const size_t name = image.rfind('/') == std::string::npos ? 0 : image.rfind('/') + 1;
  const size_t digest = image.find('@', name);
  const size_t tag = image.find(':', name);
  if (digest != std::string::npos) return job::PullPolicy::kIfMissing;
  const bool is_latest = tag == std::string::npos || image.substr(tag + 1) == "latest";
  return is_latest ? job::PullPolicy::kAlways : job::PullPolicy::kIfMissing;
}

void read_pull_policy(Map& map, Pod& pod) {
  const auto policy = map.take("imagePullPolicy");
  pod.container.pull = usual_pull(pod.image);
  if (!policy) return;
  const auto word = policy->word({"Always", "IfNotPresent", "Never"});
  if (word == "Always") pod.container.pull = job::PullPolicy::kAlways;
  if (word == "IfNotPresent") pod.container.pull = job::PullPolicy::kIfMissing;
  if (word == "Never") pod.container.pull = job::PullPolicy::kNever;
}

/// All fields of a container but its mounts and its restartPolicy.
void read_container(const Node& node, const PodContext& context, const Labels& labels, Map& map,
                    Pod& pod) {
  pod.container_place = node.place();
  if (const auto image = map.require("image")) pod.image = image->text().value_or("");
  pod.command = words_of(map.take("command"));
  pod.arguments = words_of(map.take("args"));
  read_pull_policy(map, pod);
  if (const auto resources = map.take("resources")) read_resources(*resources, context, pod);
  if (const auto list = map.take("envFrom")) read_environment_from(*list, context, labels, pod);
  if (const auto list = map.take("env")) read_environment(*list, context, labels, pod);
  if (const auto folder = map.take("workingDir")) {
    pod.folder = folder->text().value_or("");
    pod.folder_place = folder->place();
  }
  if (const auto own = map.take("securityContext")) read_security_context(*own, pod);
  map.warn("livenessProbe", "has no effect: a task that hangs is not restarted");
  map.refuse("lifecycle", ": no program runs before or after the task's own");
  map.refuse("volumeDevices", "");
  map.refuse("resizePolicy", "");
  map.skip({"name", "ports", "readinessProbe", "startupProbe", "terminationMessagePath",
            "terminationMessagePolicy", "stdin", "stdinOnce", "tty"});
}

std::string container_name(const Node& node) {
  for (const config::YamlEntry& entry : node.value().map) {
    if (entry.key == "name") return entry.value.scalar;
  }
  return "";
}

/// The index of the container that runs the program.
size_t main_container(const std::vector<Node>& containers, const PodContext& context) {
  const auto named = std::find_if(containers.begin(), containers.end(), [&](const Node& one) {
    return !context.container.empty() && container_name(one) == context.container;
  });
  return named == containers.end() ? 0 : static_cast<size_t>(named - containers.begin());
}

/// A container beside the task's.
class BesideReading {
 public:
  BesideReading(const Node& node, const PodContext& context, const Labels& labels, const Pod& task)
      : node_(node), context_(context), labels_(labels), task_(task) {}

  /// `runs`: unless its restartPolicy makes an init container a sidecar.
  BesideContainer read(job::PodContainer::Runs runs) && {
    Map map(node_);
    read_container(node_, context_, labels_, map, own_);
    const auto mounts = map.take("volumeMounts");
    const auto policy = map.take("restartPolicy");
    map.end();
    if (policy && policy->word({"Always"})) runs = job::PodContainer::Runs::kBeside;
    refuse_what_only_tasks_have();
    const Program program = program_of(own_, {}, node_.findings());
    BesideContainer beside{.container = {.name = container_name(node_),
                                         .runs = runs,
                                         .image = own_.image,
                                         .pull = own_.container.pull,
                                         .command = program.command,
                                         .arguments = program.arguments,
                                         .environment = program.environment,
                                         .folder = own_.folder,
                                         .user = own_.user,
                                         .cpu_milli = own_.resources.cpu_milli,
                                         .memory_bytes = own_.resources.memory_bytes},
                           .place = node_.place()};
    if (!mounts) return beside;
    for (const Node& mount : mounts->elements()) {
      if (auto text = read_mount(mount)) beside.container.mounts.push_back(*std::move(text));
    }
    return beside;
  }

 private:
  void refuse_what_only_tasks_have() {
    if (own_.resources.gpus > 0 || !own_.kubernetes.devices.empty()) {
      node_.fault("requests devices, which only the container of the task gets");
    }
    if (own_.container.new_privileges || !own_.container.capabilities.empty()) {
      node_.fault("requests privileges, which only the container of the task may have");
    }
    std::erase_if(own_.environment, [&](const Variable& variable) {
      if (variable.secret.empty() && is_plain(variable.value)) return false;
      node_.findings().faults.push_back(
          {.field = variable.place.path,
           .what = "has a value that exists only in the running task, or a secret; a container "
                   "beside the task gets plain values, and Secrets as volumes",
           .line = variable.place.line});
      return true;
    });
  }

  /// As PodContainer::mounts; nothing: it cannot be mounted, which is a fault.
  std::optional<std::string> read_mount(const Node& node) const {
    Map map(node);
    const auto name_node = map.require("name");
    const auto path_node = map.require("mountPath");
    const std::string sub_path = map.text("subPath").value_or("");
    const bool read_only = map.flag("readOnly").value_or(false);
    map.refuse("subPathExpr", "; write the path, in subPath");
    map.skip({"recursiveReadOnly", "mountPropagation"});
    map.end();
    const auto name = name_node ? name_node->text() : std::nullopt;
    const auto path = path_node ? path_node->text() : std::nullopt;
    if (!name || !path) return std::nullopt;
    const auto places = task_.targets.equal_range(*name);
    if (places.first == places.second) {
      node.fault("'" + *name +
                 "' is not mounted by the container of the task; mount the volume there, too");
      return std::nullopt;
    }
    for (auto place = places.first; place != places.second; ++place) {
      const auto below = below_target(place->second, sub_path);
      if (!below) continue;
      if (has_files_of_the_job(place->second.target)) {
        node.fault(
            "has files of a ConfigMap in the same file, which only the task gets, when it "
            "starts; create the ConfigMap in the cluster, and leave it out of the file");
        return std::nullopt;
      }
      return *below + (*below == *path ? "" : ":" + *path) + (read_only ? ":ro" : "");
    }
    node.fault("mounts another part of '" + *name + "' than the container of the task");
    return std::nullopt;
  }

  /// The path in the task; nothing: the task does not have that part of the volume.
  static std::optional<std::string> below_target(const MountTarget& place,
                                                 const std::string& sub_path) {
    if (place.sub_path.empty()) {
      return place.target + (sub_path.empty() ? "" : "/" + sub_path);
    }
    if (sub_path == place.sub_path) return place.target;
    if (!sub_path.starts_with(place.sub_path + "/")) return std::nullopt;
    return place.target + sub_path.substr(place.sub_path.size());
  }

  bool has_files_of_the_job(const std::string& target) const {
    return std::any_of(task_.mounts.begin(), task_.mounts.end(), [&](const Mount& mount) {
      return mount.volume.target == target && !mount.files.empty();
    });
  }

  const Node& node_;
  const PodContext& context_;
  const Labels& labels_;
  const Pod& task_;
  Pod own_;
};

constexpr const char* kElsewhere =
    ", which only a server that runs jobs on Kubernetes runs; elsewhere, do its work in the "
    "command or the image";

void refuse_beside(const std::vector<Node>& containers, const std::string& what) {
  for (const Node& container : containers) container.fault("is " + what + kElsewhere);
}

}  // namespace

void read_containers(Map& spec, const VolumeSources& sources, const PodContext& context,
                     const Labels& labels, Pod& pod) {
  const auto first_list = spec.take("initContainers");
  const auto list = spec.require("containers");
  const std::vector<Node> first = first_list ? first_list->elements() : std::vector<Node>{};
  if (!context.on_kubernetes) refuse_beside(first, "an init container");
  if (!list) return;
  std::vector<Node> others = list->elements();
  if (others.empty()) return list->fault("contains no container");
  const size_t index = main_container(others, context);
  const Node main = others[index];
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(index));
  if (!context.on_kubernetes) refuse_beside(others, "a second container");
  Map map(main);
  read_container(main, context, labels, map, pod);
  pod.container_place = main.place();
  if (const auto mounts = map.take("volumeMounts")) read_mounts(*mounts, sources, context, pod);
  map.skip({"restartPolicy"});
  map.end();
  if (!context.on_kubernetes) return;
  using Runs = job::PodContainer::Runs;
  const std::string name = container_name(main);
  const auto check_name = [&](const Node& other) {
    if (name.empty() || container_name(other) != name) return;
    other.fault("'" + name + "' is the name of two containers");
  };
  std::for_each(first.begin(), first.end(), check_name);
  std::for_each(others.begin(), others.end(), check_name);
  for (const Node& node : first) {
    pod.beside.push_back(BesideReading(node, context, labels, pod).read(Runs::kBefore));
  }
  for (const Node& node : others) {
    node.warning("is a sidecar: it ends with the task, and is started again if it ends before");
    pod.beside.push_back(BesideReading(node, context, labels, pod).read(Runs::kBeside));
  }
}

}  // namespace muster::dialects::kubernetes
