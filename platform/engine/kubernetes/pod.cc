#include "engine/kubernetes/pod.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/folder/mounts.h"
#include "engine/node/pod.h"
#include "job/kubernetes.h"
#include "job/project.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;
using job::Volume;
using Json = nlohmann::json;

namespace {

/// Root gets these in a container of its own, as with other engines of containers: enough to install
/// packages, to run sshd and to change the account. The level "baseline" of Pod Security has them all.
constexpr std::array kRootCapabilities{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID",
                                       "KILL",  "SETGID",       "SETUID", "SYS_CHROOT"};

/// Writable even if the root of the image is not.
constexpr std::array kScratchFolders{"/tmp", "/run", "/var/tmp"};

constexpr std::array<std::string_view, 5> kReservedPlaces{node::kPodFolder, node::kPodGenerated,
                                                          "/proc", "/sys", "/dev"};

// Places in the init container, whose image has its programs in /muster.
constexpr const char* kNodeProgram = "/muster/muster-node";
constexpr const char* kInstallFolder = "/pod";  ///< the volume that the task sees as /muster
constexpr const char* kSecretFolder = "/brief";

constexpr std::string_view kKueuePrefix = "kueue.x-k8s.io/";

/// muster-node removes its files and ends within this time after the task's grace period.
constexpr int64_t kLeaveSeconds = 30;

std::string hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  constexpr size_t kDigits = 8;
  return std::string(digits.data(), kDigits);
}

/// A DNS label of at most `longest` bytes: the text itself, or as much of it as is legal and a hash.
std::string label_of(std::string_view text, size_t longest) {
  std::string legal;
  for (const char c : text) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool is_legal = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    legal += is_legal ? lower : '-';
  }
  while (legal.ends_with('-')) legal.pop_back();
  const size_t first = std::min(legal.find_first_not_of('-'), legal.size());
  legal.erase(0, first);
  if (legal == text && legal.size() <= longest) return legal;
  const std::string hash = hash_of(text);
  legal.resize(std::min(legal.size(), longest - hash.size() - 1));
  while (legal.ends_with('-')) legal.pop_back();
  return legal.empty() ? hash : legal + "-" + hash;
}

/// Values that are no legal labels become annotations.
void add_fact(Json& metadata, const char* key, const std::string& value) {
  if (value.empty()) return;
  metadata[job::is_kubernetes_label(value) ? "labels" : "annotations"][key] = value;
}

Json labelled_metadata(const PodJob& job, const PodSite& site, const std::string& name) {
  Json metadata{{"name", name}, {"namespace", site.space}};
  metadata["labels"] = {{kManagedBy, "muster"},
                        {kGangKey, gang_name(site.owner, job.gang)},
                        {kAttemptKey, std::to_string(job.gang.attempt)}};
  add_fact(metadata, kOwnerKey, site.owner);
  add_fact(metadata, kJobKey, job.gang.job_id);
  add_fact(metadata, kJobNameKey, job.name);
  add_fact(metadata, kProjectKey, job.project);
  add_fact(metadata, kUserKey, job.owner);
  return metadata;
}

Json owned(Json metadata, const PodJob& job, const PodSite& site, const std::string& uid) {
  metadata["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                              {"kind", "Secret"},
                                              {"name", gang_name(site.owner, job.gang)},
                                              {"uid", uid}}});
  return metadata;
}

std::string plain_target(const std::string& path) {
  std::string text = path;
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool lies_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

const char* pull_word(job::PullPolicy policy) {
  switch (policy) {
    case job::PullPolicy::kAlways:
      return "Always";
    case job::PullPolicy::kNever:
      return "Never";
    case job::PullPolicy::kIfMissing:
      break;
  }
  return "IfNotPresent";
}

// --- volumes

/// Collects the volumes of a pod and their mounts.
class Mounts {
 public:
  void add(const std::string& name, Json volume, Json mount) {
    volume["name"] = name;
    mount["name"] = name;
    volumes_.push_back(std::move(volume));
    add_mount(std::move(mount));
  }
  /// Of a volume that is there already.
  void add_mount(Json mount) {
    taken_.insert(mount["mountPath"].get<std::string>());
    mounts_.push_back(std::move(mount));
  }
  void add_scratch(const std::string& name, const std::string& path) {
    if (covers(path)) return;
    add(name, {{"emptyDir", Json::object()}}, {{"mountPath", path}});
  }
  bool covers(const std::string& path) const { return taken_.count(path) > 0; }

  Json volumes() const { return volumes_; }
  Json mounts() const { return mounts_; }

 private:
  Json volumes_ = Json::array();
  Json mounts_ = Json::array();
  std::set<std::string> taken_;
};

void add_own_places(Mounts& mounts) {
  mounts.add_scratch("muster", node::kPodFolder);
  mounts.add_scratch("muster-generated", node::kPodGenerated);
}

void add_job_volume(const PodJob& job, const PodSite& site, size_t index, Mounts& mounts) {
  const Volume& volume = job.volumes[index];
  const std::string name = "volume-" + std::to_string(index);
  Json mount{{"mountPath", plain_target(volume.target)}};
  if (volume.read_only) mount["readOnly"] = true;
  switch (volume.kind) {
    case Volume::Kind::kHostPath:
      // Without a type, the node would make a folder that is missing.
      return mounts.add(name, {{"hostPath", {{"path", volume.source}, {"type", "Directory"}}}},
                        mount);
    case Volume::Kind::kTree:
    case Volume::Kind::kArtifacts:
      mount.erase("readOnly");  // muster-node fills it
      return mounts.add(name, {{"emptyDir", Json::object()}}, mount);
    case Volume::Kind::kStorage:
      mount["subPath"] = job.project + "/" + volume.source;
      return mounts.add(name, {{"persistentVolumeClaim", {{"claimName", site.storage_claim}}}},
                        mount);
  }
}

/// A claim is one volume of the pod, however often it is mounted.
void add_claims(const PodJob& job, Mounts& mounts) {
  std::map<std::string, std::string> names;
  for (const std::string& text : job.options.claims) {
    const auto claim = job::claim_of(text);
    if (!claim) continue;  // check_kubernetes() has refused it
    Json mount{{"mountPath", claim->path}};
    if (!claim->folder.empty()) mount["subPath"] = claim->folder;
    if (claim->read_only) mount["readOnly"] = true;
    const auto [known, is_new] =
        names.try_emplace(claim->claim, "claim-" + std::to_string(names.size()));
    if (is_new) {
      mounts.add(known->second, {{"persistentVolumeClaim", {{"claimName", claim->claim}}}}, mount);
    } else {
      mount["name"] = known->second;
      mounts.add_mount(std::move(mount));
    }
  }
}

Mounts mounts_of(const PodJob& job, const PodTask& task, const PodSite& site) {
  Mounts mounts;
  add_own_places(mounts);
  for (size_t i = 0; i < job.volumes.size(); ++i) add_job_volume(job, site, i, mounts);
  add_claims(job, mounts);
  Json memory{{"medium", "Memory"}};
  if (job.container.shm_bytes > 0) memory["sizeLimit"] = std::to_string(job.container.shm_bytes);
  mounts.add("shm", {{"emptyDir", memory}}, {{"mountPath", "/dev/shm"}});
  int number = 0;
  for (const std::string& folder : task.folders) {
    mounts.add_scratch("folder-" + std::to_string(number++), folder);
  }
  number = 0;
  for (const char* const folder : kScratchFolders) {
    if (!job.container.writable_root) {
      mounts.add_scratch("scratch-" + std::to_string(number), folder);
    }
    ++number;
  }
  return mounts;
}

// --- resources

std::string gpu_resource(const std::string& model, const PodSite& site) {
  const auto own = site.gpu_resources.find(model);
  if (own != site.gpu_resources.end()) return own->second;
  const auto any = site.gpu_resources.find("");
  return any == site.gpu_resources.end() ? "nvidia.com/gpu" : any->second;
}

/// Requests and limits are equal: a task gets what it claims, and never more.
Json resources_of(const PodJob& job, const PodTask& task, const PodSite& site) {
  Json claims = Json::object();
  if (task.resources.cpu_milli > 0) claims["cpu"] = cpu_quantity(task.resources.cpu_milli);
  if (task.resources.memory_bytes > 0) {
    claims["memory"] = std::to_string(task.resources.memory_bytes);
  }
  if (task.gpus > 0) claims[gpu_resource(task.gpu_model, site)] = std::to_string(task.gpus);
  for (const auto& [name, count] : job.options.devices) claims[name] = count;
  if (claims.empty()) return Json::object();
  return {{"requests", claims}, {"limits", claims}};
}

/// Without devices: the init container only copies files, but a quota may require its limits.
Json install_resources(const Json& of_task) {
  Json own = Json::object();
  for (const char* const which : {"requests", "limits"}) {
    if (!of_task.contains(which)) continue;
    for (const char* const name : {"cpu", "memory"}) {
      if (of_task[which].contains(name)) own[which][name] = of_task[which][name];
    }
  }
  return own;
}

// --- security

Json container_security(const PodJob& job, const PodAccount& account) {
  Json capabilities{{"drop", Json::array({"ALL"})}};
  std::set<std::string> kept(job.container.capabilities.begin(), job.container.capabilities.end());
  if (account.uid == 0) kept.insert(kRootCapabilities.begin(), kRootCapabilities.end());
  if (!kept.empty()) capabilities["add"] = kept;
  return {{"allowPrivilegeEscalation", job.container.new_privileges},
          {"readOnlyRootFilesystem", !job.container.writable_root},
          {"capabilities", capabilities}};
}

Json install_security() {
  return {{"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"capabilities", {{"drop", Json::array({"ALL"})}}}};
}

/// Claims belong to root when they are new: a group of the task makes them writable.
bool needs_group(const PodJob& job) {
  return !job.options.claims.empty() ||
         std::any_of(job.volumes.begin(), job.volumes.end(),
                     [](const Volume& volume) { return volume.kind == Volume::Kind::kStorage; });
}

Json pod_security(const PodJob& job, const PodAccount& account) {
  Json security{{"runAsNonRoot", account.uid != 0},
                {"runAsUser", account.uid},
                {"runAsGroup", account.gid},
                {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  if (needs_group(job)) {
    security["fsGroup"] = account.gid;
    security["fsGroupChangePolicy"] = "OnRootMismatch";
  }
  return security;
}

// --- where it runs

Json tolerations_of(const PodJob& job, const PodSite& site) {
  Json all = Json::array();
  for (const auto& texts : {site.tolerations, job.options.tolerations}) {
    for (const std::string& text : texts) {
      const auto toleration = job::toleration_of(text);
      if (!toleration) continue;
      Json one = Json::object();
      if (!toleration->key.empty()) one["key"] = toleration->key;
      one["operator"] = toleration->value ? "Equal" : "Exists";
      if (toleration->value) one["value"] = *toleration->value;
      if (!toleration->effect.empty()) one["effect"] = toleration->effect;
      all.push_back(std::move(one));
    }
  }
  return all;
}

/// By affinity, not by nodeName: the cluster's scheduler then checks the node's resources and taints
/// and says what is missing, where the kubelet would fail the pod for good.
Json affinity_to(const std::string& node) {
  const Json field{{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}};
  const Json term{{"matchFields", Json::array({field})}};
  return {{"nodeAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution",
             {{"nodeSelectorTerms", Json::array({term})}}}}}};
}

/// The label by which the discovery of a GPU's vendor names the model.
std::string model_label(const PodSite& site) {
  const std::string resource = gpu_resource("", site);
  return resource.substr(0, resource.find('/')) + "/gpu.product";
}

/// nullopt: any node.
std::optional<Json> affinity_to(const PodChoice& choice, bool has_gpus, const PodSite& site) {
  Json common = Json::object();
  for (const std::string& node : choice.avoided_nodes) {
    common["matchFields"].push_back(
        {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({node})}});
  }
  if (has_gpus && !choice.gpu_models.empty()) {
    common["matchExpressions"].push_back(
        {{"key", model_label(site)}, {"operator", "In"}, {"values", choice.gpu_models}});
  }
  Json terms = Json::array();
  if (choice.pools.empty()) {
    if (common.empty()) return std::nullopt;
    terms.push_back(common);
  } else {
    Json labelled = common;
    labelled["matchExpressions"].push_back(
        {{"key", site.pool_label}, {"operator", "In"}, {"values", choice.pools}});
    terms.push_back(std::move(labelled));
    const bool has_default = std::find(choice.pools.begin(), choice.pools.end(),
                                       job::kDefaultPool) != choice.pools.end();
    if (has_default) {
      common["matchExpressions"].push_back(
          {{"key", site.pool_label}, {"operator", "DoesNotExist"}});
      terms.push_back(std::move(common));
    }
  }
  return Json{{"nodeAffinity",
               {{"requiredDuringSchedulingIgnoredDuringExecution",
                 {{"nodeSelectorTerms", std::move(terms)}}}}}};
}

void add_place(const PodJob& job, const PodTask& task, const PodSite& site, Json& spec) {
  if (!task.node.empty()) {
    spec["affinity"] = affinity_to(task.node);
  } else if (auto affinity = affinity_to(job.choice, task.gpus > 0, site)) {
    spec["affinity"] = *std::move(affinity);
  }
  if (!job.options.node_selector.empty()) spec["nodeSelector"] = job.options.node_selector;
  if (Json all = tolerations_of(job, site); !all.empty()) spec["tolerations"] = std::move(all);
  const auto set = [&](const char* field, const std::string& own, const std::string& usual) {
    const std::string& name = own.empty() ? usual : own;
    if (!name.empty()) spec[field] = name;
  };
  set("priorityClassName", job.options.priority_class, site.priority_class);
  set("runtimeClassName", job.options.runtime_class, site.runtime_class);
  set("serviceAccountName", job.options.service_account, "");
}

std::string registry_secret(const PodJob& job, const PodSite& site) {
  return gang_name(site.owner, job.gang) + "-registry";
}

Json pull_secrets_of(const PodJob& job, const PodSite& site) {
  std::set<std::string> names(site.image_pull_secrets.begin(), site.image_pull_secrets.end());
  names.insert(job.options.image_pull_secrets.begin(), job.options.image_pull_secrets.end());
  if (!job.logins.empty()) names.insert(registry_secret(job, site));
  Json all = Json::array();
  for (const std::string& name : names) all.push_back({{"name", name}});
  return all;
}

/// The registry that an image's name begins with.
std::string registry_of(const std::string& image) {
  const std::string first = image.substr(0, image.find('/'));
  const bool is_host = image.find('/') != std::string::npos &&
                       (first.find_first_of(".:") != std::string::npos || first == "localhost");
  return is_host ? first : "https://index.docker.io/v1/";
}

/// A variable of the downward API.
Json from_pod(const char* name, const char* field) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", field}}}}}};
}

Json variables_of_pod(const PodTask& task, int64_t grace) {
  return Json::array({from_pod(node::kPodNode, "spec.nodeName"),
                      from_pod(node::kPodUid, "metadata.uid"),
                      from_pod(node::kPodAddress, "status.podIP"),
                      {{"name", node::kPodIndex}, {"value", std::to_string(task.index)}},
                      {{"name", node::kPodGrace}, {"value", std::to_string(grace)}}});
}

Json task_container(const PodJob& job, const PodTask& task, const PodSite& site,
                    const PodAccount& account, const Mounts& mounts, int64_t grace) {
  return {{"name", kTaskContainer},
          {"image", task.image},
          {"imagePullPolicy", pull_word(job.container.pull)},
          {"command", Json::array({std::string(node::kPodPrograms) + "/muster-node"})},
          {"args", Json::array({"--pod", node::kPodBrief})},
          {"env", variables_of_pod(task, grace)},
          {"resources", resources_of(job, task, site)},
          {"securityContext", container_security(job, account)},
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"volumeMounts", mounts.mounts()}};
}

Json install_container(const PodSite& site, const Json& resources) {
  const std::string brief = std::string(kSecretFolder) + "/" + kBriefFile;
  return {{"name", kInstallContainer},
          {"image", site.node_image},
          {"imagePullPolicy", pull_word(site.node_image_pull)},
          {"command", Json::array({kNodeProgram})},
          {"args", Json::array({"--install", kInstallFolder, brief})},
          {"resources", install_resources(resources)},
          {"securityContext", install_security()},
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"volumeMounts",
           Json::array({{{"name", "muster"}, {"mountPath", kInstallFolder}},
                        {{"name", "brief"}, {"mountPath", kSecretFolder}, {"readOnly", true}}})}};
}

Result<void> refuse_if_any(std::vector<base::Fault> faults, const std::string& job) {
  if (faults.empty()) return {};
  Error error{.code = ErrorCode::kInvalid,
              .what = "job '" + job + "' cannot run on Kubernetes: " + faults.front().field + " " +
                      faults.front().what,
              .advice = ""};
  error.faults = std::move(faults);
  return error;
}

void check_user(const std::string& user, const std::string& field, const PodSite& site,
                std::vector<base::Fault>& faults) {
  if (pod_account(user, site)) return;
  faults.push_back({.field = field,
                    .what = "'" + user +
                            "' is not a number, and Kubernetes knows no names of "
                            "users: give UID[:GID], as in 1000:1000"});
}

void check_volume(const Volume& volume, size_t index, const PodSite& site,
                  std::vector<base::Fault>& faults) {
  const std::string field = "volumes[" + std::to_string(index) + "]";
  const std::string target = plain_target(volume.target);
  for (const std::string_view place : kReservedPlaces) {
    if (!lies_within(target, place)) continue;
    faults.push_back({.field = field, .what = std::string(place) + " is reserved in pods"});
  }
  if (volume.kind == Volume::Kind::kStorage && !is_folder_name(volume.source)) {
    faults.push_back(
        {.field = field, .what = "'" + volume.source + "' is not the name of a storage"});
  }
  if (volume.kind == Volume::Kind::kStorage && site.storage_claim.empty()) {
    faults.push_back({.field = field,
                      .what = "is storage of the project, and this server has no volume claim for "
                              "it (kubernetes.storage_claim)"});
  }
}

/// A plan may come without a spec that was checked.
Result<void> check_volumes(const PodJob& job, const PodSite& site) {
  std::vector<base::Fault> faults;
  for (size_t i = 0; i < job.volumes.size(); ++i) check_volume(job.volumes[i], i, site, faults);
  return refuse_if_any(std::move(faults), job.name);
}

void check_share(const job::Resources& resources, const std::string& field,
                 std::vector<base::Fault>& faults) {
  if (resources.gpu_share_milli == 0 && resources.gpu_memory_bytes == 0) return;
  faults.push_back({.field = field,
                    .what = "requests a part of a GPU, and pods get whole GPUs only: give gpus, or "
                            "the resource of a MIG device by kubernetes.devices"});
}

}  // namespace

// --- names and accounts

std::string gang_name(const std::string& owner, const GangId& gang) {
  constexpr size_t kLongestJob = 36;
  return "muster-" + hash_of(owner) + "-" + label_of(gang.job_id, kLongestJob) + "-" +
         std::to_string(gang.attempt);
}

std::string pod_name(const std::string& owner, const GangId& gang, std::string_view task) {
  constexpr size_t kLongestTask = 60;
  return gang_name(owner, gang) + "-" + label_of(task, kLongestTask);
}

std::string owner_selector(const std::string& owner) {
  return std::string(kManagedBy) + "=muster," + kOwnerKey + "=" + owner;
}

Result<PodAccount> pod_account(const std::string& user, const PodSite& site) {
  if (user.empty()) return PodAccount{.uid = site.uid, .gid = site.gid};
  const size_t colon = user.find(':');
  const auto uid = base::number_of<uint32_t>(user.substr(0, colon));
  const auto gid =
      colon == std::string::npos ? uid : base::number_of<uint32_t>(user.substr(colon + 1));
  if (uid && gid) return PodAccount{.uid = *uid, .gid = *gid};
  return Error{
      .code = ErrorCode::kInvalid,
      .what = "user '" + user + "' is not a number, and Kubernetes knows no names of users",
      .advice = "give UID[:GID], as in --user 1000:1000"};
}

std::string local_queue_of(const std::string& project, const PodSite& site) {
  constexpr std::string_view kProject = "{project}";
  constexpr size_t kLongestName = 63;
  std::string name = site.local_queue;
  if (const size_t at = name.find(kProject); at != std::string::npos) {
    name.replace(at, kProject.size(), label_of(project, kLongestName));
  }
  return name;
}

Result<void> check_pods(const job::JobSpec& spec, const PodSite& site) {
  std::vector<base::Fault> faults;
  check_user(spec.user, "user", site, faults);
  if (spec.command.empty() && spec.arguments.empty()) {
    faults.push_back({.field = "command",
                      .what = "is missing: the command of an image cannot be read through "
                              "Kubernetes"});
  }
  if (spec.sandbox == job::Sandbox::kNone) {
    faults.push_back(
        {.field = "sandbox", .what = "cannot be none: a pod always isolates its task"});
  }
  if (spec.launch == job::LaunchBy::kSrun) {
    faults.push_back({.field = "launch", .what = "is srun, which only Slurm has"});
  }
  check_share(spec.resources, "resources", faults);
  for (const auto& [key, value] : spec.kubernetes.labels) {
    if (site.queue != PodQueue::kKueue || !key.starts_with(kKueuePrefix)) continue;
    faults.push_back({.field = "kubernetes.labels." + key,
                      .what = "is set by Muster: kubernetes.local_queue of the server names the "
                              "queue"});
  }
  for (const job::NamedRole& named : job::roles_of(spec)) {
    check_share(named.role.resources, std::string(named.field) + ".resources", faults);
    check_user(named.role.user, std::string(named.field) + ".user", site, faults);
  }
  for (size_t i = 0; i < spec.volumes.size(); ++i) check_volume(spec.volumes[i], i, site, faults);
  return refuse_if_any(std::move(faults), spec.name);
}

// --- objects

Json owner_object(const PodJob& job, const PodSite& site, std::string_view brief) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", labelled_metadata(job, site, gang_name(site.owner, job.gang))},
          {"type", "Opaque"},
          {"stringData", {{kBriefFile, brief}}}};
}

Json registry_object(const PodJob& job, const PodSite& site, const std::string& uid) {
  Json logins = Json::object();
  for (const PodLogin& login : job.logins) {
    logins[login.registry.empty() ? registry_of(login.image) : login.registry] = {
        {"username", login.username},
        {"password", login.password},
        {"auth", base::to_base64(login.username + ":" + login.password)}};
  }
  return {
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", owned(labelled_metadata(job, site, registry_secret(job, site)), job, site, uid)},
      {"type", "kubernetes.io/dockerconfigjson"},
      {"stringData", {{".dockerconfigjson", Json{{"auths", logins}}.dump()}}}};
}

/// Headless: each pod's host name resolves to the pod, also before it is ready.
Json service_object(const PodJob& job, const PodSite& site, const std::string& uid) {
  const std::string name = gang_name(site.owner, job.gang);
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", owned(labelled_metadata(job, site, name), job, site, uid)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", {{kGangKey, name}}}}}};
}

Json network_policy_object(const PodJob& job, const PodSite& site, const std::string& uid) {
  const std::string name = gang_name(site.owner, job.gang);
  const Json pods{{"matchLabels", {{kGangKey, name}}}};
  const Json from{{"from", Json::array({{{"podSelector", pods}}})}};
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", owned(labelled_metadata(job, site, name), job, site, uid)},
          {"spec",
           {{"podSelector", pods},
            {"policyTypes", Json::array({"Ingress"})},
            {"ingress", Json::array({from})}}}};
}

Result<Json> pod_object(const PodJob& job, const PodTask& task, const PodSite& site,
                        const std::string& uid) {
  MUSTER_TRY(const PodAccount account, pod_account(task.user, site));
  MUSTER_CHECK(check_volumes(job, site));
  const std::string gang = gang_name(site.owner, job.gang);
  const Mounts mounts = mounts_of(job, task, site);
  const auto grace = std::chrono::ceil<std::chrono::seconds>(job.grace).count() + kLeaveSeconds;
  const Json container = task_container(job, task, site, account, mounts, grace);
  Json metadata = owned(labelled_metadata(job, site, pod_name(site.owner, job.gang, task.task)),
                        job, site, uid);
  add_fact(metadata, kTaskKey, task.task);
  for (const auto& [key, value] : job.options.labels) metadata["labels"][key] = value;
  for (const auto& [key, value] : job.options.annotations) metadata["annotations"][key] = value;
  if (site.queue == PodQueue::kKueue) {
    metadata["labels"][kKueueQueue] = local_queue_of(job.project, site);
    metadata["labels"][kKueueGroup] = gang;
    metadata["annotations"][kKueueCount] = std::to_string(job.pods);
    metadata["annotations"][kKueueRetriable] = "false";
  }
  Json volumes = mounts.volumes();
  // The init container runs as the task's account, and it alone mounts this.
  constexpr int kAllRead = 0444;
  volumes.push_back(
      {{"name", "brief"}, {"secret", {{"secretName", gang}, {"defaultMode", kAllRead}}}});
  Json spec{{"restartPolicy", "Never"},
            {"hostname", task.hostname},
            {"subdomain", gang},
            {"automountServiceAccountToken", !job.options.service_account.empty()},
            {"enableServiceLinks", false},
            {"terminationGracePeriodSeconds", grace},
            {"securityContext", pod_security(job, account)},
            {"initContainers", Json::array({install_container(site, container["resources"])})},
            {"containers", Json::array({container})},
            {"volumes", std::move(volumes)}};
  spec["dnsConfig"]["searches"] =
      Json::array({gang + "." + site.space + ".svc." + site.cluster_domain});
  if (Json secrets = pull_secrets_of(job, site); !secrets.empty()) {
    spec["imagePullSecrets"] = std::move(secrets);
  }
  add_place(job, task, site, spec);
  return Json{
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", std::move(spec)}};
}

// --- quantities

std::string cpu_quantity(int64_t milli) {
  constexpr int64_t kWhole = 1000;
  return milli % kWhole == 0 ? std::to_string(milli / kWhole) : std::to_string(milli) + "m";
}

}  // namespace muster::engine::kubernetes
