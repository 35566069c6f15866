// The objects of one attempt of a job, as JSON for the API server. One Secret owns all others, so
// that deleting it deletes all: a headless Service for names, a NetworkPolicy, and a pod for each
// task. The container of a pod has the user's image, and runs muster-node in it. Muster's own image,
// mounted as a volume, brings muster-node into the pod, so that any image will do. Where the node
// cannot mount images, an init container copies muster-node into the pod first.
//
// A pod meets the level "restricted" of Pod Security. A job that requests more (root, capabilities,
// a folder of the node) relaxes exactly that.
//
// Pure.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "job/spec.h"

namespace muster::engine::kubernetes {

// Labels and annotations. Values that are not legal in a label are in an annotation of the same
// name.
inline constexpr const char* kManagedBy = "app.kubernetes.io/managed-by";  ///< "muster"
inline constexpr const char* kOwnerKey = "muster.dev/owner";               ///< PodSite::owner
inline constexpr const char* kGangKey = "muster.dev/gang";                 ///< gang_name()
inline constexpr const char* kJobKey = "muster.dev/job";                   ///< the job's id
inline constexpr const char* kAttemptKey = "muster.dev/attempt";
inline constexpr const char* kTaskKey = "muster.dev/task";
inline constexpr const char* kJobNameKey = "muster.dev/job-name";
inline constexpr const char* kProjectKey = "muster.dev/project";
inline constexpr const char* kUserKey = "muster.dev/user";

/// The key of the owner object with the brief. No task can read the attempt's key there: muster-node
/// gets the brief in a variable, which it overwrites, or from an init container, which alone mounts
/// the Secret, as a file, which it removes.
inline constexpr const char* kBriefFile = "brief";

inline constexpr const char* kTaskContainer = "task";
inline constexpr const char* kInstallContainer = "muster";
inline constexpr const char* kProgramsVolume = "muster-programs";  ///< of the image with them

/// The scheduler that decides when and where the pods of a gang run.
enum class PodQueue {
  kMuster,   ///< Muster's scheduler: pods are created for their nodes, when it is their turn
  kDefault,  ///< the cluster's scheduler: pods are created at once, and wait for nodes
  kKueue,    ///< Kueue: the same, and they wait until it admits all of them
};

/// How pods get Muster's programs.
enum class ProgramsBy {
  kNode,           ///< by the first way that the pod's node supports (NodeBook::mounts_images())
  kImageVolume,    ///< the pod mounts the image with the programs
  kInitContainer,  ///< an init container copies them: one more container start for each pod
};

/// The options of the server for all pods.
struct PodSite {
  std::string owner;  ///< separates this server's objects from those of others in the namespace
  std::string space;  ///< the namespace
  std::string cluster_domain = "cluster.local";
  std::string node_image;  ///< Muster's image with muster-node
  job::PullPolicy node_image_pull = job::PullPolicy::kIfMissing;
  ProgramsBy programs = ProgramsBy::kNode;
  uint16_t port = 0;  ///< at which muster-node listens in the pod; 0: it calls the server
  uid_t uid = 1000;   ///< of jobs that name no user
  gid_t gid = 1000;
  /// GPU model -> the resource of its device plugin; "": all other models.
  std::map<std::string, std::string> gpu_resources = {{"", "nvidia.com/gpu"}};
  std::string storage_claim;  ///< for storage volumes, a folder for each project; empty: none
  /// Of the claim for /artifacts that each attempt gets, if its tasks share it; empty: they do not.
  std::string artifacts_class;
  int64_t artifacts_bytes = 0;
  // The defaults of jobs.
  std::string priority_class;
  std::string runtime_class;
  std::vector<std::string> image_pull_secrets;
  std::vector<std::string> tolerations;
  PodQueue queue = PodQueue::kMuster;
  std::string local_queue;  ///< of Kueue; may contain "{project}"
  std::string pool_label;   ///< as NodeOptions::pool_label; for pods without a node
};

/// Kueue's labels and annotations of a group of pods.
inline constexpr const char* kKueueQueue = "kueue.x-k8s.io/queue-name";
inline constexpr const char* kKueueGroup = "kueue.x-k8s.io/pod-group-name";
inline constexpr const char* kKueueCount = "kueue.x-k8s.io/pod-group-total-count";
/// "false": no pod takes the place of one that has ended.
inline constexpr const char* kKueueRetriable = "kueue.x-k8s.io/retriable-in-group";

/// The nodes among which the cluster chooses. Empty lists: any.
struct PodChoice {
  std::vector<std::string> pools;
  std::vector<std::string> gpu_models;
  std::vector<std::string> avoided_nodes;

  bool operator==(const PodChoice&) const = default;
};

/// A login to the registry of an image.
struct PodLogin {
  std::string registry;  ///< empty: the one in the image's name
  std::string image;
  std::string username;
  std::string password;

  bool operator==(const PodLogin&) const = default;
};

/// The parts of a job that all of its pods share.
struct PodJob {
  GangId gang;
  std::string name;
  std::string project;
  std::string owner;  ///< the user
  job::ContainerSpec container;
  job::KubernetesSpec options;
  std::vector<job::Volume> volumes;
  std::vector<PodLogin> logins;
  std::chrono::milliseconds grace{0};
  size_t pods = 0;         ///< how many pods the gang has
  bool is_single = false;  ///< of one task, for which no other pod needs a name: no Service
  PodChoice choice = {};   ///< for pods without a node

  bool operator==(const PodJob&) const = default;
};

struct PodTask {
  std::string task;
  int index = 0;  ///< the number of the task in the gang
  std::string hostname;
  std::string node;              ///< where it runs; empty: the cluster chooses
  bool mounts_programs = false;  ///< as ProgramsBy::kImageVolume
  std::string image;
  std::string user;  ///< "UID[:GID]"; empty: the site's
  job::Resources resources;
  int gpus = 0;
  std::string gpu_model;
  /// Further folders that the task's files need: "/etc/mpi".
  std::vector<std::string> folders;
  std::vector<job::PodContainer> containers =
      {};  ///< beside the program, in the order of their start

  bool operator==(const PodTask&) const = default;
};

struct PodAccount {
  uid_t uid = 0;
  gid_t gid = 0;
};
/// The account of a task. kInvalid: the user is not a number.
base::Result<PodAccount> pod_account(const std::string& user, const PodSite& site);

/// The name of a gang's objects: a DNS label, different for each server, job and attempt.
std::string gang_name(const std::string& owner, const GangId& gang);
std::string pod_name(const std::string& owner, const GangId& gang, std::string_view task);
/// The selector of all objects of this server.
std::string owner_selector(const std::string& owner);

/// The LocalQueue of Kueue for jobs of a project.
std::string local_queue_of(const std::string& project, const PodSite& site);

/// Whether the tasks of the job have one folder of artifacts, in a claim of the attempt.
bool shares_artifacts(const PodJob& job, const PodSite& site);
/// The name of that claim.
std::string artifacts_claim(const PodJob& job, const PodSite& site);

/// All reasons why no pod could be made of a job, before it is accepted. kInvalid, kRefused.
base::Result<void> check_pods(const job::JobSpec& spec, const PodSite& site);

/// `brief`: for the muster-nodes of the attempt; contains its key.
nlohmann::json owner_object(const PodJob& job, const PodSite& site, std::string_view brief);
/// `uid`: of the created owner object. REQUIRES: the job has logins.
nlohmann::json registry_object(const PodJob& job, const PodSite& site, const std::string& uid);
/// For the folder of artifacts that the tasks share. REQUIRES: shares_artifacts()
nlohmann::json artifacts_claim_object(const PodJob& job, const PodSite& site,
                                      const std::string& uid);
nlohmann::json service_object(const PodJob& job, const PodSite& site, const std::string& uid);
/// Only the pods of the gang may connect to its pods.
nlohmann::json network_policy_object(const PodJob& job, const PodSite& site,
                                     const std::string& uid);
/// kInvalid: as check_pods() finds.
base::Result<nlohmann::json> pod_object(const PodJob& job, const PodTask& task, const PodSite& site,
                                        const std::string& uid);

}  // namespace muster::engine::kubernetes
