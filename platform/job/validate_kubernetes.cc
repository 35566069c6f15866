#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/units.h"
#include "job/checker.h"
#include "job/kubernetes.h"
#include "job/validate.h"

namespace muster::job {

namespace {

bool is_label_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The keys that Muster or Kubernetes sets itself.
bool is_reserved_key(std::string_view key) {
  const std::string_view prefix = key.substr(0, std::min(key.find('/'), key.size()));
  constexpr std::array<std::string_view, 4> kReserved{"muster.dev", "app.kubernetes.io",
                                                      "kubernetes.io", "k8s.io"};
  if (key.find('/') == std::string_view::npos) return false;
  return std::any_of(kReserved.begin(), kReserved.end(), [&](std::string_view name) {
    return prefix == name || prefix.ends_with("." + std::string(name));
  });
}

void check_object_name(const std::string& name, const std::string& field, Checker& check) {
  check.require(name.empty() || is_object_name(name), field,
                in_quotes(name) +
                    " is not the name of a Kubernetes object; use lower-case letters, digits, '-' "
                    "and '.'");
}

void check_kubernetes_key(const std::string& key, const std::string& field, Checker& check) {
  check.require(is_qualified_name(key), field,
                in_quotes(key) +
                    " is not a key such as example.com/name; use letters, digits and "
                    "-_. in the name, at most 63");
}

void check_pod_labels(const KubernetesSpec& options, Checker& check) {
  for (const auto& [key, value] : options.labels) {
    const std::string field = "kubernetes.labels." + key;
    check_kubernetes_key(key, field, check);
    check.require(!is_reserved_key(key), field, "is set by Muster or Kubernetes");
    check.require(is_kubernetes_label(value), field,
                  in_quotes(value) +
                      " is not the value of a label; use letters, digits and -_., "
                      "at most 63");
  }
  for (const auto& [key, value] : options.annotations) {
    const std::string field = "kubernetes.annotations." + key;
    check_kubernetes_key(key, field, check);
    check.require(!key.starts_with("muster.dev/"), field, "is set by Muster");
  }
}

void check_claims(const KubernetesSpec& options, Checker& check) {
  for (size_t i = 0; i < options.claims.size(); ++i) {
    const std::string field = "kubernetes.claims[" + std::to_string(i) + "]";
    const auto claim = claim_of(options.claims[i]);
    check.require(claim.has_value(), field,
                  in_quotes(options.claims[i]) +
                      " is not CLAIM[/FOLDER]:PATH[:ro], as in datasets/imagenet:/data:ro, nor "
                      "secret:NAME[/KEY]:PATH or configmap:NAME[/KEY]:PATH");
    // The Secrets of attempts contain the keys of their connections.
    const bool is_own = claim && claim->kind == KubernetesClaim::Kind::kSecret &&
                        claim->claim.starts_with("muster-");
    check.require(!is_own, field,
                  in_quotes(options.claims[i]) +
                      " names a secret of Muster; the names of other secrets do not begin with "
                      "muster-");
  }
}

constexpr std::string_view kSecretPrefix = "secret:";
constexpr std::string_view kConfigMapPrefix = "configmap:";

}  // namespace

std::string KubernetesClaim::object() const {
  switch (kind) {
    case Kind::kSecret:
      return std::string(kSecretPrefix) + claim;
    case Kind::kConfigMap:
      return std::string(kConfigMapPrefix) + claim;
    case Kind::kClaim:
      break;
  }
  return claim;
}

bool is_object_name(std::string_view text) {
  constexpr size_t kLongest = 253;
  if (text.empty() || text.size() > kLongest) return false;
  const auto parts = base::split(text, '.');
  return std::all_of(parts.begin(), parts.end(),
                     [](const std::string& part) { return is_dns_label(part, kLongest); });
}

bool is_kubernetes_label(std::string_view text) {
  constexpr size_t kLongest = 63;
  if (text.empty()) return true;
  return text.size() <= kLongest && is_label_letter(text.front()) && is_label_letter(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_label_letter(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_qualified_name(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return !text.empty() && is_kubernetes_label(text);
  const std::string_view name = text.substr(slash + 1);
  return is_object_name(text.substr(0, slash)) && !name.empty() && is_kubernetes_label(name);
}

std::optional<KubernetesToleration> toleration_of(std::string_view text) {
  if (text == "*") return KubernetesToleration{.key = "", .value = std::nullopt, .effect = ""};
  KubernetesToleration toleration;
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    toleration.effect = text.substr(colon + 1);
    constexpr std::array<std::string_view, 3> kEffects{"NoSchedule", "PreferNoSchedule",
                                                       "NoExecute"};
    const bool is_known =
        std::find(kEffects.begin(), kEffects.end(), toleration.effect) != kEffects.end();
    if (!is_known) return std::nullopt;
    text = text.substr(0, colon);
  }
  const size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    toleration.value = text.substr(equals + 1);
    if (!is_kubernetes_label(*toleration.value)) return std::nullopt;
    text = text.substr(0, equals);
  }
  if (!is_qualified_name(text)) return std::nullopt;
  toleration.key = text;
  return toleration;
}

bool tolerates(std::string_view toleration, std::string_view taint) {
  if (toleration == "*" || toleration == taint) return true;
  const size_t colon = taint.rfind(':');
  const std::string_view effect = taint.substr(std::min(colon, taint.size()));
  const std::string_view value = taint.substr(0, colon);
  const std::string_view key = value.substr(0, value.find('='));
  if (toleration == value || toleration == key) return true;
  return !effect.empty() && toleration.size() == key.size() + effect.size() &&
         toleration.starts_with(key) && toleration.ends_with(effect);
}

std::optional<KubernetesClaim> claim_of(std::string_view text) {
  KubernetesClaim claim;
  if (text.ends_with(":ro")) {
    claim.read_only = true;
    text.remove_suffix(3);
  }
  const auto take_prefix = [&](std::string_view prefix, KubernetesClaim::Kind kind) {
    // A claim may be called "secret": then a path follows the colon.
    if (!text.starts_with(prefix) || text.substr(prefix.size()).starts_with('/')) return;
    text.remove_prefix(prefix.size());
    claim.kind = kind;
    claim.read_only = true;
  };
  if (text.starts_with(kSecretPrefix)) {
    take_prefix(kSecretPrefix, KubernetesClaim::Kind::kSecret);
  } else {
    take_prefix(kConfigMapPrefix, KubernetesClaim::Kind::kConfigMap);
  }
  const size_t colon = text.find(":/");
  if (colon == std::string_view::npos) return std::nullopt;
  claim.path = text.substr(colon + 1);
  text = text.substr(0, colon);
  const size_t slash = text.find('/');
  claim.claim = text.substr(0, slash);
  if (slash != std::string_view::npos) {
    claim.folder = text.substr(slash + 1);
    if (!has_plain_parts(claim.folder)) return std::nullopt;
  }
  const bool is_path = claim.path.size() > 1 && !has_nul(claim.path) &&
                       has_plain_parts(std::string_view(claim.path).substr(1));
  if (!is_object_name(claim.claim) || !is_path) return std::nullopt;
  return claim;
}

void check_kubernetes(const KubernetesSpec& options, Checker& check) {
  constexpr size_t kMostPairs = 64;
  const std::array<std::pair<const char*, size_t>, 4> maps{
      {{"kubernetes.node_selector", options.node_selector.size()},
       {"kubernetes.devices", options.devices.size()},
       {"kubernetes.labels", options.labels.size()},
       {"kubernetes.annotations", options.annotations.size()}}};
  for (const auto& [field, size] : maps) {
    check.require(size <= kMostPairs, field,
                  "has more than " + std::to_string(kMostPairs) + " entries");
  }
  for (const auto& [key, value] : options.node_selector) {
    const std::string field = "kubernetes.node_selector." + key;
    check_kubernetes_key(key, field, check);
    check.require(is_kubernetes_label(value), field,
                  in_quotes(value) + " is not the value of a label");
  }
  for (size_t i = 0; i < options.tolerations.size(); ++i) {
    check.require(toleration_of(options.tolerations[i]).has_value(),
                  "kubernetes.tolerations[" + std::to_string(i) + "]",
                  in_quotes(options.tolerations[i]) +
                      " is not KEY[=VALUE][:EFFECT], as in dedicated=train:NoSchedule; the effects "
                      "are NoSchedule, PreferNoSchedule and NoExecute");
  }
  check_object_name(options.priority_class, "kubernetes.priority_class", check);
  check_object_name(options.service_account, "kubernetes.service_account", check);
  check_object_name(options.runtime_class, "kubernetes.runtime_class", check);
  for (size_t i = 0; i < options.image_pull_secrets.size(); ++i) {
    const std::string field = "kubernetes.image_pull_secrets[" + std::to_string(i) + "]";
    check.require(!options.image_pull_secrets[i].empty(), field, "is empty");
    check_object_name(options.image_pull_secrets[i], field, check);
  }
  for (const auto& [name, count] : options.devices) {
    const std::string field = "kubernetes.devices." + name;
    check.require(is_qualified_name(name) && name.find('/') != std::string::npos, field,
                  in_quotes(name) + " is not the name of a resource such as rdma/hca");
    const auto number = base::number_of<int>(count);
    check.require(number && *number > 0, field, in_quotes(count) + " is not a positive number");
  }
  check_claims(options, check);
  check_pod_labels(options, check);
}

}  // namespace muster::job
