// Volumes of pods, as volumes of Muster:
//
//   hostPath                  a path of the node
//   persistentVolumeClaim     a folder of the project of the same name ("storage/NAME")
//   emptyDir, ephemeral       an empty folder of the job; at /dev/shm the size of shared memory
//   configMap                 the files of a ConfigMap of the same file; on a server that runs jobs on
//                             Kubernetes, else the ConfigMap of the namespace
//   secret                    on a server that runs jobs on Kubernetes: the Secret of the namespace
#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "dialects/kubernetes/pod.h"
#include "job/quantity.h"

namespace muster::dialects::kubernetes {

namespace {

using job::Volume;

constexpr const char* kSharedMemory = "/dev/shm";
/// The size if neither the volume nor the container has a limit: practically unlimited.
constexpr int64_t kUsualShm = int64_t{64} << 30;

std::string normal_path(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

/// A mount of a container, with its volume.
class MountReading {
 public:
  MountReading(const Node& node, const PodContext& context, Pod& pod)
      : node_(node), context_(context), pod_(pod) {}

  void read(const VolumeSources& sources) {
    Map map(node_);
    const auto name_node = map.require("name");
    const auto target = map.require("mountPath");
    sub_path_ = map.text("subPath").value_or("");
    read_only_ = map.flag("readOnly").value_or(false);
    if (const auto mode = map.take("mountPropagation")) {
      const auto word = mode->word({"None", "HostToContainer", "Bidirectional"});
      if (word == "Bidirectional") mode->fault("'Bidirectional' is not supported");
    }
    map.refuse("subPathExpr", "; write the path, in subPath");
    map.skip({"recursiveReadOnly"});
    map.end();
    const auto name = name_node ? name_node->text() : std::nullopt;
    target_ = target ? target->text().value_or("") : "";
    if (!name || target_.empty()) return;
    target_ = normal_path(target_);
    const auto source = sources.find(*name);
    if (source == sources.end()) {
      return name_node->fault("'" + *name + "' is not one of the pod's volumes");
    }
    pod_.targets.emplace(*name, MountTarget{.target = target_, .sub_path = sub_path_});
    Map volume(source->second);
    volume.skip({"name"});
    read_source(volume);
    volume.end();
  }

 private:
  void read_source(Map& map) {
    if (const auto source = map.take("hostPath")) return host_path(*source);
    if (const auto source = map.take("persistentVolumeClaim")) return claim(*source);
    if (const auto source = map.take("emptyDir")) return empty_folder(*source);
    if (const auto source = map.take("configMap")) return config_map(*source);
    if (context_.on_kubernetes) {
      if (const auto source = map.take("secret")) return mounted_object(*source, "secret");
    }
    if (const auto source = map.take("ephemeral")) {
      source->warning("is an empty folder of the job; its size and class are not enforced");
      return add({.kind = Volume::Kind::kTree, .source = "", .target = target_});
    }
    for (const std::string& key : map.keys()) {
      if (key != "name") map.refuse(key.c_str(), advice_on(key));
    }
    if (map.keys().size() <= 1) map.node().fault("has no source");
  }

  static std::string advice_on(const std::string& kind) {
    if (kind == "secret") {
      return ": secrets of Muster are variables, or files below /generated/secrets; store it with "
             "'muster secret set', and read it with secretKeyRef";
    }
    if (kind == "nfs") return "; mount it on the nodes, and use hostPath";
    return "; use hostPath, persistentVolumeClaim, emptyDir or configMap";
  }

  void add(Volume volume, std::map<std::string, std::string> files = {}) {
    pod_.mounts.push_back(
        {.volume = std::move(volume), .files = std::move(files), .place = node_.place()});
  }

  bool has_no_sub_path(const std::string& what) {
    if (sub_path_.empty()) return true;
    node_.fault("mounts the path '" + sub_path_ + "' of " + what +
                "; Muster mounts volumes as a whole");
    return false;
  }

  void host_path(const Node& source) {
    Map map(source);
    const auto path = map.require("path");
    const auto type = map.take("type");
    map.end();
    const auto word = type ? type->word({"", "Directory", "DirectoryOrCreate", "File",
                                         "FileOrCreate", "Socket", "CharDevice", "BlockDevice"})
                           : std::nullopt;
    if (word == "Socket" || word == "CharDevice" || word == "BlockDevice") {
      return type->fault("'" + *word + "' is not supported; a task gets files and folders");
    }
    if (word == "DirectoryOrCreate" || word == "FileOrCreate") {
      type->warning("the path is not created; it must exist on the nodes");
    }
    const auto text = path ? path->text() : std::nullopt;
    if (!text) return;
    if (normal_path(*text) == kSharedMemory && target_ == kSharedMemory) return share_memory(0);
    const std::string whole = sub_path_.empty() ? *text : *text + "/" + sub_path_;
    add({.kind = Volume::Kind::kHostPath,
         .source = normal_path(whole),
         .target = target_,
         .read_only = read_only_});
  }

  void claim(const Node& source) {
    Map map(source);
    const auto name = map.require("claimName");
    const bool read_only = map.flag("readOnly").value_or(false);
    map.end();
    const auto text = name ? name->text() : std::nullopt;
    if (!text) return;
    if (context_.on_kubernetes) {
      const std::string folder = sub_path_.empty() ? "" : "/" + sub_path_;
      pod_.kubernetes.claims.push_back(*text + folder + ":" + target_ +
                                       (read_only_ || read_only ? ":ro" : ""));
      return;
    }
    if (!has_no_sub_path("a claim")) return;
    add({.kind = Volume::Kind::kStorage,
         .source = *text,
         .target = target_,
         .read_only = read_only_ || read_only});
  }

  void empty_folder(const Node& source) {
    Map map(source);
    const auto medium = map.take("medium");
    const auto limit = map.take("sizeLimit");
    map.end();
    const auto text = limit ? limit->text() : std::nullopt;
    const auto size = text ? job::milli_of_quantity(*text) : std::nullopt;
    if (text && !size) limit->fault("'" + *text + "' is not a quantity, as in 16Gi");
    if (target_ == kSharedMemory) return share_memory(size.value_or(0) / 1000);
    if (medium && medium->text() == "Memory") {
      medium->warning("the folder is on disk; only /dev/shm is in memory");
    } else if (size) {
      limit->warning("has no effect: Muster does not limit the size of one folder");
    }
    // Kubernetes shares it between the containers of a pod, of which Muster has one.
    if (!has_no_sub_path("an empty folder")) return;
    add({.kind = Volume::Kind::kTree, .source = "", .target = target_, .read_only = read_only_});
  }

  /// `bytes`: 0: up to the memory of the task.
  void share_memory(int64_t bytes) {
    const int64_t memory = pod_.resources.memory_bytes;
    if (bytes == 0) bytes = memory > 0 ? memory : kUsualShm;
    pod_.container.shm_bytes = std::max(pod_.container.shm_bytes, bytes);
  }

  /// A Secret or ConfigMap of the namespace.
  void mounted_object(const Node& source, const std::string& kind) {
    Map map(source);
    const auto name = map.require(kind == "secret" ? "secretName" : "name");
    const auto optional = map.take("optional");
    const auto items = map.take("items");
    map.skip({"defaultMode"});
    map.end();
    if (optional && optional->flag().value_or(false)) {
      optional->warning("has no effect: the object must exist");
    }
    const auto text = name ? name->text() : std::nullopt;
    if (!text) return;
    const std::string object = kind + ":" + *text;
    auto& claims = pod_.kubernetes.claims;
    if (!items) {
      claims.push_back(object + (sub_path_.empty() ? "" : "/" + sub_path_) + ":" + target_);
      return;
    }
    for (const Node& item : items->elements()) {
      Map each(item);
      const auto key_node = each.require("key");
      const auto path_node = each.require("path");
      each.skip({"mode"});
      each.end();
      const auto key = key_node ? key_node->text() : std::nullopt;
      const auto path = path_node ? path_node->text() : std::nullopt;
      if (!key || !path || (!sub_path_.empty() && sub_path_ != *path)) continue;
      const std::string place = sub_path_.empty() ? target_ + "/" + *path : target_;
      claims.push_back(object + "/" + *key + ":" + place);
    }
  }

  void config_map(const Node& source) {
    if (context_.on_kubernetes) {
      Map peek(source);
      const auto name = peek.text("name");
      const bool is_in_file = name && context_.config_maps.count(*name) > 0;
      if (name && !is_in_file) return mounted_object(source, "configmap");
    }
    Map map(source);
    const auto name = map.require("name");
    const bool optional = map.flag("optional").value_or(false);
    const auto items = map.take("items");
    map.skip({"defaultMode"});
    map.end();
    const auto text = name ? name->text() : std::nullopt;
    if (!text) return;
    const auto found = context_.config_maps.find(*text);
    if (found == context_.config_maps.end()) {
      const std::string what = "ConfigMap '" + *text + "' is not in this file";
      if (optional) return name->warning(what + "; the volume is left out");
      return name->fault(what + "; add it, or put its files into the image or a workspace");
    }
    if (!has_no_sub_path("a ConfigMap")) return;
    add({.kind = Volume::Kind::kTree, .source = "", .target = target_, .read_only = true},
        items ? chosen(*items, found->second) : found->second);
  }

  static std::map<std::string, std::string> chosen(const Node& items,
                                                   const std::map<std::string, std::string>& data) {
    std::map<std::string, std::string> files;
    for (const Node& item : items.elements()) {
      Map map(item);
      const auto key = map.require("key");
      const auto path = map.require("path");
      map.skip({"mode"});
      map.end();
      const auto key_text = key ? key->text() : std::nullopt;
      const auto path_text = path ? path->text() : std::nullopt;
      if (!key_text || !path_text) continue;
      const auto found = data.find(*key_text);
      if (found == data.end()) {
        key->fault("'" + *key_text + "' is not a key of the ConfigMap");
      } else if (!is_path_below(*path_text)) {
        path->fault("'" + *path_text + "' is not a path below the volume");
      } else {
        files[*path_text] = found->second;
      }
    }
    return files;
  }

  static bool is_path_below(const std::string& path) {
    if (path.empty() || path.front() == '/' || path.size() > 255) return false;
    const std::vector<std::string> parts = base::split(path, '/');
    return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
      return part.empty() || part == "." || part == "..";
    });
  }

  const Node& node_;
  const PodContext& context_;
  Pod& pod_;
  std::string target_;
  std::string sub_path_;
  bool read_only_ = false;
};

}  // namespace

void read_volume_sources(const Node& list, VolumeSources& sources) {
  for (const Node& volume : list.elements()) {
    Map map(volume);
    const auto name = map.require("name");
    const auto text = name ? name->text() : std::nullopt;
    if (!text) continue;
    if (!sources.emplace(*text, volume).second) name->fault("'" + *text + "' is given twice");
  }
}

void read_mounts(const Node& list, const VolumeSources& sources, const PodContext& context,
                 Pod& pod) {
  for (const Node& mount : list.elements()) MountReading(mount, context, pod).read(sources);
}

}  // namespace muster::dialects::kubernetes
