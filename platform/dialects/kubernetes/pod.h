// A pod template of a Kubernetes file: the one container that Muster runs as a task, the containers
// beside it, and the fields of the pod around them. Fields without a counterpart in Muster are faults by their path.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dialects/kubernetes/node.h"
#include "job/spec.h"

namespace muster::dialects::kubernetes {

// --- text with variables
//
// Kubernetes replaces $(NAME) in commands, arguments and values of variables. Muster's specs
// contain plain text, so values from the file are replaced when it is translated. Values that exist
// only in a running task (its rank, its host name, a secret) remain variables, which a shell
// replaces (program.h).

/// A piece of plain text, or the name of a variable of the task.
struct Piece {
  bool is_variable = false;
  std::string text;

  bool operator==(const Piece&) const = default;
};

using Expression = std::vector<Piece>;

/// The text of an expression without variables.
std::string plain_text(const Expression& expression);
size_t size_of(const Expression& expression);
bool is_plain(const Expression& expression);

/// A variable of a container's environment.
struct Variable {
  std::string name;
  Expression value;
  std::string secret;  ///< the project's secret that holds the value; then `value` is unused
  Place place;
};

// --- pods

/// A word of a command, not yet expanded.
struct Word {
  std::string text;
  Place place;
};

struct Mount {
  job::Volume volume;
  /// Of a ConfigMap of the same file: the files of the volume, path -> content.
  std::map<std::string, std::string> files;
  Place place;
};

/// Where the container of a task has a volume.
struct MountTarget {
  std::string target;
  std::string sub_path;  ///< of the volume; empty: all of it
};

/// An init container or a sidecar.
struct BesideContainer {
  job::PodContainer container;
  Place place;
};

struct Pod {
  Place place;            ///< of the pod's spec
  Place container_place;  ///< of the container that runs the program
  std::string image;
  std::vector<Word> command;
  std::vector<Word> arguments;
  std::vector<Variable> environment;  ///< in the order in which they are set
  std::string folder;                 ///< empty: the image's
  Place folder_place;
  std::string user;  ///< "1000:100"
  job::Resources resources;
  job::ContainerSpec container;
  std::vector<Mount> mounts;
  std::multimap<std::string, MountTarget> targets;  ///< by the name of the volume
  std::vector<BesideContainer> beside;              ///< in the order in which they start
  std::optional<int64_t> grace_seconds;
  std::string restart_policy;  ///< of the pod's spec; empty: not given
  Place restart_place;
  job::KubernetesSpec kubernetes;  ///< settings that apply only on Kubernetes
  std::vector<std::string> node_pools;
  std::vector<std::string> gpu_models;
  std::string priority_class;
  Place priority_place;
  std::string subdomain;
  std::optional<int64_t> deadline_seconds;  ///< activeDeadlineSeconds of the pod
};

/// The ConfigMaps of the file, by name: key -> text.
using ConfigMaps = std::map<std::string, std::map<std::string, std::string>>;

struct PodContext {
  const ConfigMaps& config_maps;
  /// Whether the job is for a server that runs jobs on Kubernetes: its own names of nodes, claims and
  /// devices apply.
  bool on_kubernetes = false;
  /// The name of the container that runs the program ("pytorch"), if the pod has several; empty: the
  /// first.
  std::string container;
};

/// Reads a PodTemplateSpec: its metadata and its spec.
Pod read_pod_template(const Node& node, const PodContext& context);

// The parts of a pod, which a TrainJob overrides one by one.

/// Of a pod.
using Labels = std::map<std::string, std::string>;

/// Adds the variables of an `env` list; one of the same name replaces the earlier one. `labels`: of the
/// pod, for fieldRef.
void read_environment(const Node& list, const PodContext& context, const Labels& labels, Pod& pod);
/// The same for an `envFrom` list.
void read_environment_from(const Node& list, const PodContext& context, const Labels& labels,
                           Pod& pod);

/// Sets the claims of a `resources` map.
void read_resources(const Node& node, const PodContext& context, Pod& pod);

/// The fields of a pod's spec other than its containers and volumes: where it runs, its rights, its
/// end. Leaves the keys of the containers and volumes in `spec`.
void read_pod_fields(Map& spec, const PodContext& context, Pod& pod);

/// The `securityContext` of a pod or a container.
void read_security_context(const Node& node, Pod& pod);

/// The volumes of a pod, by name.
using VolumeSources = std::map<std::string, Node>;
void read_volume_sources(const Node& list, VolumeSources& sources);
/// The `volumeMounts` of its container.
void read_mounts(const Node& list, const VolumeSources& sources, const PodContext& context,
                 Pod& pod);

/// The `containers` and `initContainers` of a pod's spec. `labels`: of the pod.
void read_containers(Map& spec, const VolumeSources& sources, const PodContext& context,
                     const Labels& labels, Pod& pod);

/// Muster's name for a key of a Kubernetes Secret: ("hf-secret", "token") is hf_secret_token.
std::string secret_name(const std::string& secret, const std::string& key);

}  // namespace muster::dialects::kubernetes
