#include "engine/kubernetes/pod.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/kubernetes/pod_containers.h"
#include "engine/kubernetes/pod_place.h"
#include "engine/kubernetes/pod_volumes.h"
#include "engine/node/pod.h"
#include "job/kubernetes.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;
using job::Volume;
using Json = nlohmann::json;

namespace {

constexpr std::string_view kKueuePrefix = "kueue.x-k8s.io/";

/// muster-node removes its files and ends within this time after the task's grace period.
constexpr int64_t kLeaveSeconds = 30;

std::string hash_of(std::string_view text) {
  std::array<char, 17> digits{};
  const auto hash = static_cast<unsigned long long>(base::fnv_1a(text));
  std::snprintf(digits.data(), digits.size(), "%016llx", hash);
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

/// Values that are not legal labels become annotations.
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

/// Claims belong to root when they are new: a group of the task makes them writable.
bool needs_group(const PodJob& job, const PodSite& site) {
  return !job.options.claims.empty() || shares_artifacts(job, site) ||
         std::any_of(job.volumes.begin(), job.volumes.end(),
                     [](const Volume& volume) { return volume.kind == Volume::Kind::kStorage; });
}

Json pod_security(const PodJob& job, const PodSite& site, const PodAccount& account) {
  Json security{{"runAsNonRoot", account.uid != 0},
                {"runAsUser", account.uid},
                {"runAsGroup", account.gid},
                {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  if (needs_group(job, site)) {
    security["fsGroup"] = account.gid;
    security["fsGroupChangePolicy"] = "OnRootMismatch";
  }
  return security;
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
                            "' is not a number, and Kubernetes does not support user names: give "
                            "UID[:GID], as in 1000:1000"});
}

void check_share(const job::Resources& resources, const std::string& field,
                 std::vector<base::Fault>& faults) {
  if (resources.gpu_share_milli == 0 && resources.gpu_memory_bytes == 0) return;
  faults.push_back({.field = field,
                    .what = "requests a part of a GPU, and pods get whole GPUs only: give gpus, or "
                            "the resource of a MIG device by kubernetes.devices"});
}

/// Such a request would bypass the quotas of projects, the limits of users and the scheduler.
void check_devices(const job::KubernetesSpec& options, const PodSite& site,
                   std::vector<base::Fault>& faults) {
  for (const auto& [name, count] : options.devices) {
    const bool is_gpu = name == gpu_resource("", site) ||
                        std::any_of(site.gpu_resources.begin(), site.gpu_resources.end(),
                                    [&](const auto& of_model) { return of_model.second == name; });
    if (!is_gpu) continue;
    faults.push_back({.field = "kubernetes.devices." + name,
                      .what = "is the resource of GPUs, which gpus requests: use --gpus"});
  }
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
      .what = "user '" + user + "' is not a number, and Kubernetes does not support user names",
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

bool shares_artifacts(const PodJob& job, const PodSite& site) {
  return !site.artifacts_class.empty() &&
         std::any_of(job.volumes.begin(), job.volumes.end(),
                     [](const Volume& volume) { return volume.kind == Volume::Kind::kArtifacts; });
}

std::string artifacts_claim(const PodJob& job, const PodSite& site) {
  return gang_name(site.owner, job.gang) + "-artifacts";
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
  check_devices(spec.kubernetes, site, faults);
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
  check_volumes(spec.volumes, site, faults);
  check_mount_paths(spec, faults);
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
      {"stringData", {{".dockerconfigjson", base::json_text(Json{{"auths", logins}})}}}};
}

Json artifacts_claim_object(const PodJob& job, const PodSite& site, const std::string& uid) {
  return {
      {"apiVersion", "v1"},
      {"kind", "PersistentVolumeClaim"},
      {"metadata", owned(labelled_metadata(job, site, artifacts_claim(job, site)), job, site, uid)},
      {"spec",
       {{"accessModes", Json::array({"ReadWriteMany"})},
        {"storageClassName", site.artifacts_class},
        {"resources", {{"requests", {{"storage", std::to_string(site.artifacts_bytes)}}}}}}}};
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
  std::vector<base::Fault> faults;  // a plan may come without a spec that was checked
  check_volumes(job.volumes, site, faults);
  MUSTER_CHECK(refuse_if_any(std::move(faults), job.name));
  const std::string gang = gang_name(site.owner, job.gang);
  Json volumes;
  Json mounts;
  make_volumes(job, task, site, volumes, mounts);
  const auto grace = std::chrono::ceil<std::chrono::seconds>(job.grace).count() + kLeaveSeconds;
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
  Json spec{{"restartPolicy", "Never"},
            {"hostname", task.hostname},
            {"subdomain", gang},
            {"automountServiceAccountToken", !job.options.service_account.empty()},
            {"enableServiceLinks", false},
            {"terminationGracePeriodSeconds", grace},
            {"securityContext", pod_security(job, site, account)},
            {"volumes", std::move(volumes)}};
  if (!task.mounts_programs) {
    // The init container runs as the task's account, and it alone mounts this.
    constexpr int kAllRead = 0444;
    spec["volumes"].push_back(
        {{"name", "brief"}, {"secret", {{"secretName", gang}, {"defaultMode", kAllRead}}}});
  }
  add_containers(job, task, site, {.account = account, .mounts = mounts, .grace = grace}, spec);
  spec["dnsConfig"]["searches"] =
      Json::array({gang + "." + site.space + ".svc." + site.cluster_domain});
  if (Json secrets = pull_secrets_of(job, site); !secrets.empty()) {
    spec["imagePullSecrets"] = std::move(secrets);
  }
  add_place(job, task, site, spec);
  return Json{
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", std::move(spec)}};
}

}  // namespace muster::engine::kubernetes
