#include "job/container.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "job/spec_table.h"
#include "record/field.h"

namespace muster::job {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_alphanumeric(char c) {
  return is_digit(c) || is_lower(c) || is_upper(c);
}

template <class Allowed>
bool all_are(std::string_view text, Allowed allowed) {
  return std::all_of(text.begin(), text.end(), allowed);
}

/// The text before and after the first or last `separator`; `second` is empty without a separator.
struct Halves {
  std::string_view before;
  std::optional<std::string_view> behind;
};

Halves halves(std::string_view text, size_t at) {
  if (at == std::string_view::npos) return {.before = text, .behind = {}};
  return {.before = text.substr(0, at), .behind = text.substr(at + 1)};
}

bool is_host_part(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         all_are(text, [](char c) { return is_alphanumeric(c) || c == '-'; });
}

bool is_host(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    const std::string_view address = text.substr(1, text.size() - 2);
    return !address.empty() && all_are(address, [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':';
    });
  }
  if (text.empty() || text.ends_with('.')) return false;
  const std::vector<std::string> parts = base::split(text, '.');
  return std::all_of(parts.begin(), parts.end(), is_host_part);
}

/// Lower-case letters and digits, separated by one '.', one or two '_', or any number of '-'.
bool is_path_part(std::string_view text) {
  const auto plain = [](char c) { return is_lower(c) || is_digit(c); };
  if (text.empty() || !plain(text.front()) || !plain(text.back())) return false;
  for (size_t i = 0; i < text.size();) {
    if (plain(text[i])) {
      ++i;
      continue;
    }
    const size_t end = text.find_first_not_of(text[i], i);
    const size_t length = end - i;
    const bool fits =
        text[i] == '-' || (text[i] == '_' && length <= 2) || (text[i] == '.' && length == 1);
    if (!fits || !plain(text[end])) return false;
    i = end;
  }
  return true;
}

bool is_tag(std::string_view text) {
  constexpr size_t kLongest = 128;
  return !text.empty() && text.size() <= kLongest && text.front() != '.' && text.front() != '-' &&
         all_are(text,
                 [](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_digest(std::string_view text) {
  constexpr size_t kShortest = 32;
  const auto [algorithm, digits] = halves(text, text.find(':'));
  return digits && is_path_part(algorithm) && digits->size() >= kShortest &&
         all_are(*digits, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

std::string fault_of_path(std::string_view path) {
  if (path.empty()) return "has no name before its tag";
  if (path.starts_with('/') || path.ends_with('/') || path.find("//") != std::string_view::npos) {
    return "has an empty part before or after a '/'";
  }
  std::vector<std::string> parts = base::split(path, '/');
  if (parts.size() > 1 && is_registry(parts.front())) parts.erase(parts.begin());
  if (std::all_of(parts.begin(), parts.end(), is_path_part)) return "";
  const bool shouts = std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return std::any_of(part.begin(), part.end(), is_upper);
  });
  if (shouts) return "has capital letters; only a tag may have them";
  return "has characters that a path may not have: use a-z and 0-9, with '.', '_' and '-' between "
         "them";
}

}  // namespace

std::string registry_of_image(std::string_view image) {
  const size_t slash = image.find('/');
  const std::string_view first = image.substr(0, slash);
  // The rule by which every engine distinguishes "team/image" in its default registry from
  // "host/image".
  const bool is_host = slash != std::string_view::npos &&
                       (first.find_first_of(".:") != std::string_view::npos ||
                        first == "localhost" || std::any_of(first.begin(), first.end(), is_upper));
  return std::string(is_host ? first : "docker.io");
}

bool is_registry(std::string_view text) {
  const size_t bracket = text.find(']');
  const size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const auto [host, port] = halves(text, colon);
  if (!is_host(host)) return false;
  if (!port) return true;
  constexpr int kHighestPort = 65'535;
  const auto number = base::number_of<int>(*port);
  return number && *number > 0 && *number <= kHighestPort;
}

std::string fault_of_image_name(std::string_view text) {
  constexpr std::string_view kScheme = "://";
  if (const size_t scheme = text.find(kScheme); scheme != std::string_view::npos) {
    return "is a URL; leave '" + std::string(text.substr(0, scheme + kScheme.size())) + "' out";
  }
  const auto [named, digest] = halves(text, text.find('@'));
  if (digest && !is_digest(*digest))
    return "has no valid digest after its '@', as in sha256:9f86d0...";
  const size_t slash = named.rfind('/');
  const auto [path, tag] =
      halves(named, named.find(':', slash == std::string_view::npos ? 0 : slash));
  if (tag && !is_tag(*tag)) {
    return "has no valid tag after its last ':'; use letters, digits, '_', '.' and '-'";
  }
  return fault_of_path(path);
}

const std::vector<std::string>& capabilities() {
  static const std::vector<std::string> known{
      "AUDIT_CONTROL",   "AUDIT_READ",   "AUDIT_WRITE",
      "BLOCK_SUSPEND",   "BPF",          "CHECKPOINT_RESTORE",
      "CHOWN",           "DAC_OVERRIDE", "DAC_READ_SEARCH",
      "FOWNER",          "FSETID",       "IPC_LOCK",
      "IPC_OWNER",       "KILL",         "LEASE",
      "LINUX_IMMUTABLE", "MAC_ADMIN",    "MAC_OVERRIDE",
      "MKNOD",           "NET_ADMIN",    "NET_BIND_SERVICE",
      "NET_BROADCAST",   "NET_RAW",      "PERFMON",
      "SETFCAP",         "SETGID",       "SETPCAP",
      "SETUID",          "SYSLOG",       "SYS_ADMIN",
      "SYS_BOOT",        "SYS_CHROOT",   "SYS_MODULE",
      "SYS_NICE",        "SYS_PACCT",    "SYS_PTRACE",
      "SYS_RAWIO",       "SYS_RESOURCE", "SYS_TIME",
      "SYS_TTY_CONFIG",  "WAKE_ALARM"};
  return known;
}

std::string capability_of(std::string_view written) {
  constexpr std::string_view kPrefix = "CAP_";
  std::string name(written);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

std::vector<std::string> capabilities_of(const std::vector<std::string>& written) {
  std::vector<std::string> names;
  names.reserve(written.size());
  for (const std::string& name : written) names.push_back(capability_of(name));
  return names;
}

using record::As;
using record::field;
using record::Need;
using record::Table;

namespace {

constexpr const char* kServerPattern =
    "^(([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|"
    "\\[[0-9A-Fa-f:]+\\])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|"
    "655[0-2][0-9]|6553[0-5]))?)?$";
// The name of a Kubernetes object: a DNS subdomain.
constexpr const char* kObjectNamePattern =
    "^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*)?$";
constexpr const char* kSlurmNamePattern = "^([A-Za-z0-9_+:@][A-Za-z0-9_+:@.-]{0,127})?$";
constexpr const char* kSlurmNamesPattern =
    "^([A-Za-z0-9_+:@][A-Za-z0-9_+:@.-]{0,127}(,[A-Za-z0-9_+:@][A-Za-z0-9_+:@.-]{0,127})*)?$";

void normalise_capabilities(void* names) {
  auto& capabilities = *static_cast<std::vector<std::string>*>(names);
  capabilities = capabilities_of(capabilities);
}

/// The text of the schema for capability names, with or without "CAP_".
const char* capability_schema() {
  static const std::string schema = R"({"items": {"type": "string", "pattern": "^(CAP_)?()" +
                                    base::joined(capabilities(), "|") +
                                    R"()$"}, "uniqueItems": true})";
  return schema.c_str();
}

record::Row slurm_row(record::Row row, const char* flag, const char* value, const char* help) {
  row.notes.flag = {.name = flag, .value = value, .help = help};
  return row;
}

}  // namespace

const Table& table_of(const RegistryLogin*) {
  static const Table table = record::table<RegistryLogin>(
      "RegistryLogin",
      {field<&RegistryLogin::server>(
           "server",
           {.help = "The registry to log in to. Absent or empty: the registry in the image's name.",
            .max_length = 255,
            .pattern = kServerPattern,
            .flag = {.name = "--registry-server",
                     .value = "HOST[:PORT]",
                     .help = "registry to log in to (default: the registry of the image)"}}),
       field<&RegistryLogin::username>(
           "username", {.need = Need::kOnWire,
                        .pattern = kWordPattern,
                        .flag = {.name = "--registry-username",
                                 .value = "USER",
                                 .help = "user name for the registry of the image"}}),
       field<&RegistryLogin::secret>(
           "secret", {.help = "The project's secret that contains the password.",
                      .need = Need::kOnWire,
                      .pattern = "^[A-Za-z_][A-Za-z0-9_]{0,127}$",
                      .flag = {.name = "--registry-secret",
                               .value = "NAME",
                               .help = "the project's secret that contains the password"}})});
  return table;
}

const Table& table_of(const ContainerSpec*) {
  static const Table table = record::table<ContainerSpec>(
      "Container",
      {field<&ContainerSpec::pull>(
           "pull",
           {.flag = {.name = "--image-pull-policy",
                     .value = "WHEN",
                     .help = "when to fetch the image: if-missing (default), always or never"}}),
       field<&ContainerSpec::writable_root>(
           "writable_root",
           {.help = "The whole image is writable; otherwise only volumes, /tmp and the like.",
            .flag = {.name = "--writable-root",
                     .help = "let tasks write to the whole image, not only to volumes"}}),
       field<&ContainerSpec::new_privileges>(
           "new_privileges", {.help = "Set-user-id programs gain privileges.",
                              .flag = {.name = "--allow-new-privileges",
                                       .help = "let set-user-id programs gain privileges"}}),
       field<&ContainerSpec::capabilities>(
           "capabilities", {.help = "Linux capabilities in addition to the default ones, each "
                                    "once, with or without `CAP_`.",
                            .schema = capability_schema(),
                            .flag = {.name = "--cap-add",
                                     .value = "NAME",
                                     .help = "keep this capability of root, as in SYS_PTRACE",
                                     .choices = capabilities},
                            .normalise = normalise_capabilities}),
       field<&ContainerSpec::shm_bytes>(
           "shm",
           {.help = "The size of /dev/shm. 0: the engine's default.",
            .schema = R"({"anyOf": [{"const": 0}, {"minimum": 65536, "maximum": 17592186044416},
                                    {"type": "null"}]})",
            .flag = {.name = "--shm-size", .value = "SIZE", .help = "size of /dev/shm, as in 8G"}},
           As::kBytes)},
      "The isolation of a job's containers from their host. The default of each field is the "
      "stricter value.");
  return table;
}

const Table& table_of(const KubernetesSpec*) {
  static const Table table = record::table<KubernetesSpec>(
      "Kubernetes",
      {field<&KubernetesSpec::node_selector>(
           "node_selector", {.help = "Labels that a node must have.",
                             .most_items = 64,
                             .flag = {.name = "--kubernetes-node-selector",
                                      .value = "KEY=VALUE",
                                      .help = "Kubernetes: run only on nodes with this label"}}),
       field<&KubernetesSpec::tolerations>(
           "tolerations",
           {.help = "Taints of nodes that are no obstacle: `KEY[=VALUE][:EFFECT]`; `*`: all.",
            .most_items = 64,
            .flag = {.name = "--kubernetes-toleration",
                     .value = "KEY[=VALUE][:EFFECT]",
                     .help = "Kubernetes: tolerate this taint of nodes; * tolerates all"}}),
       field<&KubernetesSpec::priority_class>(
           "priority_class", {.pattern = kObjectNamePattern,
                              .flag = {.name = "--kubernetes-priority-class",
                                       .value = "NAME",
                                       .help = "Kubernetes: priority class of the pods"}}),
       field<&KubernetesSpec::service_account>(
           "service_account",
           {.help = "The service account whose token is mounted in the pods. Empty: no token.",
            .pattern = kObjectNamePattern,
            .flag = {.name = "--kubernetes-service-account",
                     .value = "NAME",
                     .help = "Kubernetes: mount the token of this service account (default: no "
                             "token)"}}),
       field<&KubernetesSpec::runtime_class>(
           "runtime_class", {.pattern = kObjectNamePattern,
                             .flag = {.name = "--kubernetes-runtime-class",
                                      .value = "NAME",
                                      .help = "Kubernetes: runtime class of the pods"}}),
       field<&KubernetesSpec::image_pull_secrets>(
           "image_pull_secrets",
           {.help = "Secrets of the namespace with logins for the registries of images.",
            .most_items = 64,
            .flag = {.name = "--kubernetes-pull-secret",
                     .value = "NAME",
                     .help = "Kubernetes: secret with the login for the registry of the image"}}),
       field<&KubernetesSpec::claims>(
           "claims", {.help = "Volume claims of the namespace that are mounted in the pods: "
                              "`CLAIM[/FOLDER]:PATH[:ro]`.",
                      .most_items = 64,
                      .flag = {.name = "--kubernetes-claim",
                               .value = "CLAIM[/FOLDER]:PATH[:ro]",
                               .help = "Kubernetes: mount this persistent volume claim at PATH"}}),
       field<&KubernetesSpec::devices>(
           "devices",
           {.help = "Other resources of nodes that each pod requests: `rdma/hca: 1`.",
            .most_items = 64,
            .flag = {.name = "--kubernetes-device",
                     .value = "RESOURCE=COUNT",
                     .help = "Kubernetes: request this resource for each task, as in rdma/hca=1"}}),
       field<&KubernetesSpec::labels>("labels", {.help = "Labels of the pods.",
                                                 .most_items = 64,
                                                 .flag = {.name = "--kubernetes-label",
                                                          .value = "KEY=VALUE",
                                                          .help = "Kubernetes: label the pods"}}),
       field<&KubernetesSpec::annotations>("annotations",
                                           {.help = "Annotations of the pods.",
                                            .most_items = 64,
                                            .flag = {.name = "--kubernetes-annotation",
                                                     .value = "KEY=VALUE",
                                                     .help = "Kubernetes: annotate the pods"}}),
       field<&KubernetesSpec::containers>(
           "containers", {.help = "Init containers and sidecars. Servers with another engine "
                                  "refuse them.",
                          .most_items = 32})},
      "Options for Kubernetes, in addition to those that follow from the rest of the spec. Other "
      "engines store them without effect.");
  return table;
}

const Table& table_of(const SlurmSpec*) {
  static const Table table = record::table<SlurmSpec>(
      "Slurm",
      {slurm_row(field<&SlurmSpec::partition>(
                     "partition", {.help = "The partitions in which the job may wait, separated by "
                                           "commas. They are used instead of the node pools.",
                                   .max_length = 1024,
                                   .pattern = kSlurmNamesPattern}),
                 "--slurm-partition", "NAMES",
                 "Slurm: partitions in which the job may run, as in gpu,long"),
       slurm_row(
           field<&SlurmSpec::account>(
               "account",
               {.help =
                    "The account to which the job is charged, instead of the project's account.",
                .pattern = kSlurmNamePattern}),
           "--slurm-account", "NAME",
           "Slurm: account to charge (default: the account of the project)"),
       slurm_row(field<&SlurmSpec::qos>("qos", {.max_length = 1024, .pattern = kSlurmNamesPattern}),
                 "--slurm-qos", "NAME", "Slurm: quality of service"),
       slurm_row(field<&SlurmSpec::reservation>(
                     "reservation", {.max_length = 1024, .pattern = kSlurmNamesPattern}),
                 "--slurm-reservation", "NAME", "Slurm: reservation to run in"),
       slurm_row(
           field<&SlurmSpec::constraint>(
               "constraint", {.help = "Features of nodes with Slurm's operators: `a100&nvlink`.",
                              .max_length = 1024,
                              .pattern = "^([A-Za-z0-9_+:@.&|*,()\\[\\]!=/]"
                                         "[A-Za-z0-9_+:@.&|*,()\\[\\]!=/-]*)?$"}),
           "--slurm-constraint", "FEATURES",
           "Slurm: required features of the nodes, as in 'a100&nvlink'")},
      "Options for Slurm, in addition to those that follow from the rest of the spec. Other "
      "engines store them without effect. Absent or empty: Slurm's default.");
  return table;
}

}  // namespace muster::job
