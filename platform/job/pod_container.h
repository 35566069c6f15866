// The containers of pods beside the programs of tasks, and the claims of a task with them.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/job.h"
#include "job/spec.h"

namespace muster::job {

/// A mount of a PodContainer: the folder at `path` of the task is at `own_path` of the container.
struct PodContainerMount {
  std::string path;      ///< absolute; the target of a volume of the task, or below it
  std::string own_path;  ///< absolute
  bool read_only = false;

  bool operator==(const PodContainerMount&) const = default;
};
/// nullopt: not PATH[:OWN][:ro].
std::optional<PodContainerMount> pod_container_mount_of(std::string_view text);

/// Where tasks have shared memory, which containers beside them may mount, too.
inline constexpr std::string_view kSharedMemoryFolder = "/dev/shm";

/// The longest target of these volumes and claims that is `path` or a folder above it; empty: no
/// target is.
std::string volume_target_of(const std::string& path, const std::vector<Volume>& volumes,
                             const std::vector<std::string>& claims);

/// The containers in the pods of tasks with this role, in the order in which they start.
std::vector<PodContainer> pod_containers_of(const JobSpec& spec, TaskRole role);

/// The resources that one task uses on its node: resources_of(), and the reservation of Kubernetes
/// for the sidecars and the largest init container of its pod.
Resources claimed_by(const JobSpec& spec, TaskRole role);

}  // namespace muster::job
