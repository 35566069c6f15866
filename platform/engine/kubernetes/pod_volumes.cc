#include "engine/kubernetes/pod_volumes.h"

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/folder/mounts.h"
#include "engine/node/pod.h"
#include "job/kubernetes.h"
#include "job/pod_container.h"

namespace muster::engine::kubernetes {

using job::Volume;
using Json = nlohmann::json;

namespace {

/// Writable even if the root of the image is not.
constexpr std::array kScratchFolders{"/tmp", "/run", "/var/tmp"};

constexpr const char* kSharedMemoryPlace = "/dev/shm";

constexpr std::array<std::string_view, 5> kReservedPlaces{node::kPodFolder, node::kPodGenerated,
                                                          "/proc", "/sys", "/dev"};

std::string plain_target(const std::string& path) {
  std::string text = path;
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool lies_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

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

void add_own_places(const PodTask& task, const PodSite& site, Mounts& mounts) {
  mounts.add_scratch("muster", node::kPodFolder);
  if (task.mounts_programs) {
    mounts.add(
        kProgramsVolume,
        {{"image",
          {{"reference", site.node_image}, {"pullPolicy", pull_word(site.node_image_pull)}}}},
        {{"mountPath", node::kPodPrograms}, {"readOnly", true}});
  }
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
    case Volume::Kind::kArtifacts:
      if (shares_artifacts(job, site)) {
        return mounts.add(
            name, {{"persistentVolumeClaim", {{"claimName", artifacts_claim(job, site)}}}}, mount);
      }
      [[fallthrough]];
    case Volume::Kind::kTree:
      mount.erase("readOnly");  // muster-node fills it
      return mounts.add(name, {{"emptyDir", Json::object()}}, mount);
    case Volume::Kind::kStorage:
      mount["subPath"] = job.project + "/" + volume.source;
      return mounts.add(name, {{"persistentVolumeClaim", {{"claimName", site.storage_claim}}}},
                        mount);
  }
}

Json volume_of_claim(const job::KubernetesClaim& claim) {
  switch (claim.kind) {
    case job::KubernetesClaim::Kind::kSecret:
      return {{"secret", {{"secretName", claim.claim}}}};
    case job::KubernetesClaim::Kind::kConfigMap:
      return {{"configMap", {{"name", claim.claim}}}};
    case job::KubernetesClaim::Kind::kClaim:
      break;
  }
  return {{"persistentVolumeClaim", {{"claimName", claim.claim}}}};
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
        names.try_emplace(claim->object(), "claim-" + std::to_string(names.size()));
    if (is_new) {
      mounts.add(known->second, volume_of_claim(*claim), mount);
    } else {
      mount["name"] = known->second;
      mounts.add_mount(std::move(mount));
    }
  }
}

std::string is_taken(const std::string& path) {
  return "another volume is mounted at " + path;
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
        {.field = field, .what = "'" + volume.source + "' is not a valid storage name"});
  }
  if (volume.kind == Volume::Kind::kStorage && site.storage_claim.empty()) {
    faults.push_back({.field = field,
                      .what = "is storage of the project, and this server has no volume claim for "
                              "it (kubernetes.storage_claim)"});
  }
}

}  // namespace

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

void make_volumes(const PodJob& job, const PodTask& task, const PodSite& site, Json& volumes,
                  Json& all_mounts) {
  Mounts mounts;
  add_own_places(task, site, mounts);
  for (size_t i = 0; i < job.volumes.size(); ++i) add_job_volume(job, site, i, mounts);
  add_claims(job, mounts);
  Json memory{{"medium", "Memory"}};
  if (job.container.shm_bytes > 0) memory["sizeLimit"] = std::to_string(job.container.shm_bytes);
  mounts.add("shm", {{"emptyDir", memory}}, {{"mountPath", kSharedMemoryPlace}});
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
  volumes = mounts.volumes();
  all_mounts = mounts.mounts();
}

void check_volumes(const std::vector<Volume>& volumes, const PodSite& site,
                   std::vector<base::Fault>& faults) {
  for (size_t i = 0; i < volumes.size(); ++i) check_volume(volumes[i], i, site, faults);
}

void check_mount_paths(const job::JobSpec& spec, std::vector<base::Fault>& faults) {
  const std::set<std::string_view> own{node::kPodFolder, node::kPodPrograms, node::kPodGenerated,
                                       kSharedMemoryPlace};
  std::set<std::string> taken;
  for (const Volume& volume : spec.volumes) taken.insert(plain_target(volume.target));
  for (size_t i = 0; i < spec.kubernetes.claims.size(); ++i) {
    const auto claim = job::claim_of(spec.kubernetes.claims[i]);
    if (!claim) continue;  // check_kubernetes() refuses it
    const std::string field = "kubernetes.claims[" + std::to_string(i) + "]";
    if (own.count(claim->path) > 0) {
      faults.push_back({.field = field, .what = claim->path + " is reserved in pods"});
    } else if (!taken.insert(claim->path).second) {
      faults.push_back({.field = field, .what = is_taken(claim->path)});
    }
  }
  for (size_t i = 0; i < spec.kubernetes.containers.size(); ++i) {
    const std::vector<std::string>& mounts = spec.kubernetes.containers[i].mounts;
    std::set<std::string> its;
    for (size_t j = 0; j < mounts.size(); ++j) {
      const auto mount = job::pod_container_mount_of(mounts[j]);
      if (!mount || its.insert(plain_target(mount->own_path)).second) continue;
      faults.push_back({.field = "kubernetes.containers[" + std::to_string(i) + "].mounts[" +
                                 std::to_string(j) + "]",
                        .what = is_taken(mount->own_path)});
    }
  }
}

}  // namespace muster::engine::kubernetes
