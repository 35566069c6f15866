// The texts of KubernetesSpec, taken apart, and the names that Kubernetes accepts.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::job {

/// "KEY[=VALUE][:EFFECT]", or "*" for all taints.
struct KubernetesToleration {
  std::string key;                   ///< empty: every taint
  std::optional<std::string> value;  ///< nothing: any value
  std::string effect;                ///< NoSchedule, PreferNoSchedule, NoExecute; empty: any

  bool operator==(const KubernetesToleration&) const = default;
};
/// nullopt: not of that form.
std::optional<KubernetesToleration> toleration_of(std::string_view text);

/// Whether the text of a toleration covers a taint "KEY[=VALUE]:EFFECT".
bool tolerates(std::string_view toleration, std::string_view taint);

/// An object of the namespace that a pod mounts: "CLAIM[/FOLDER]:PATH[:ro]" a volume claim,
/// "secret:NAME[/KEY]:PATH" a Secret, "configmap:NAME[/KEY]:PATH" a ConfigMap.
struct KubernetesClaim {
  enum class Kind { kClaim, kSecret, kConfigMap };
  Kind kind = Kind::kClaim;
  std::string claim;       ///< the name of the object
  std::string folder;      ///< within the volume, relative, or the key; empty: all of it
  std::string path;        ///< absolute
  bool read_only = false;  ///< always, but for a volume claim

  /// "CLAIM", "secret:NAME" or "configmap:NAME".
  std::string object() const;

  bool operator==(const KubernetesClaim&) const = default;
};
/// nullopt: not of that form.
std::optional<KubernetesClaim> claim_of(std::string_view text);

/// The name of an object: a DNS subdomain of at most 253 bytes.
bool is_object_name(std::string_view text);
/// "[PREFIX/]NAME": the key of a label, an annotation or a taint, and the name of a resource.
bool is_qualified_name(std::string_view text);
/// At most 63 letters, digits and "-_.", beginning and ending with a letter or a digit; or empty.
bool is_kubernetes_label(std::string_view text);

}  // namespace muster::job
