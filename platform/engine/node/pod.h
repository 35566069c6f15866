// muster-node in a pod of Kubernetes. The pod mounts Muster's image as a volume with the programs, or,
// where the node cannot, an init container of that image puts them into an emptyDir volume
// (install()). The pod's main container, of any image, runs muster-node as process 1, which needs
// nothing of the image: no shell, library, sshd or account. The container is the task's sandbox.
//
// I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/node/messages.h"
#include "launch/choose_launch.h"

namespace muster::engine::node {

// --- places in the pod

inline constexpr const char* kPodFolder = "/muster";  ///< the emptyDir volume, writable by all
inline constexpr const char* kPodPrograms = "/muster/bin";
inline constexpr const char* kPodBrief = "/muster/brief";  ///< until muster-node has read it
inline constexpr const char* kPodJobs =
    "/muster/jobs";  ///< the folder of jobs (StartOrder::folder)
inline constexpr const char* kPodGenerated = "/generated";  ///< another emptyDir volume

// --- variables of the main container, from the pod's specification and the downward API. The task
// does not get them.

inline constexpr const char* kPodNode = "MUSTER_POD_NODE";        ///< spec.nodeName
inline constexpr const char* kPodUid = "MUSTER_POD_UID";          ///< metadata.uid
inline constexpr const char* kPodAddress = "MUSTER_POD_ADDRESS";  ///< status.podIP
inline constexpr const char* kPodIndex = "MUSTER_POD_INDEX";      ///< NodeFacts::index
inline constexpr const char* kPodPort = "MUSTER_POD_PORT";  ///< replaces the port of the brief
/// The brief itself, from the Secret, if no init container has left it in kPodBrief.
inline constexpr const char* kPodBriefText = "MUSTER_POD_BRIEF";
inline constexpr const char* kPodGrace = "MUSTER_POD_GRACE";  ///< the grace period in seconds

struct PodFacts {
  NodeFacts facts;
  std::string address;
  uint16_t port = 0;  ///< 0: that of the brief
  std::chrono::seconds grace{30};
  launch::ImageFacts image;
};

/// The pod, according to `variables`, and its image, according to the files under `root`. GPUs are
/// those of NVIDIA_VISIBLE_DEVICES; their numbers count from 0, because a container sees no others.
/// kInvalid: a variable is missing or malformed.
base::Result<PodFacts> read_pod(const std::map<std::string, std::string>& variables,
                                const std::filesystem::path& root = "/");

/// The value of kPodBriefText. Overwrites and removes the variable, so that nothing that this process
/// starts gets the key, and no /proc/PID/environ has it. REQUIRES: this process has one thread.
std::optional<std::string> take_brief_variable();

/// Copies the programs beside this one to FOLDER/bin, and the brief, if any, to FOLDER/brief. The
/// brief is readable by every account, as the main container may run as another one; muster-node
/// removes it before the task starts.
base::Result<void> install(const std::filesystem::path& programs,
                           const std::filesystem::path& folder, const std::filesystem::path& brief);

/// Runs `body` in a child process, which gets the signals that end a container, and reaps all other
/// processes that come to this one. Returns the exit code of the child, or 128 + its signal.
/// REQUIRES: this process has one thread.
int hold_as_process_one(const std::function<int()>& body);

/// Connects standard input and output to a port of this pod (PodPort), for a server that can run
/// programs in the pod but cannot reach its ports. Returns the exit code.
int run_bridge(uint16_t port);

}  // namespace muster::engine::node
