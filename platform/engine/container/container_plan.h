// From the plan of a task to its container: the request to the engine, and the files that are put
// into the container.
//
// Pure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/container/docker_values.h"
#include "engine/engine.h"
#include "engine/shim/plan.h"
#include "workspace/small_archive.h"

namespace muster::engine {

// Muster's folders in a container. Both are anonymous volumes, which are removed with the
// container.
inline constexpr const char* kMusterFolder = "/muster";        ///< TaskFolder: plan, log, exit
inline constexpr const char* kRemoteShell = "muster-rsh";      ///< name of one of the programs
inline constexpr const char* kProgramsFolder = "/muster/bin";  ///< the programs, 0755
inline constexpr const char* kTaskFolder = "/muster/task";  ///< owned by the task's account, 0700
inline constexpr const char* kGeneratedFolder = "/generated";

/// The facts about its host and its gang that the plan of a container requires.
struct ContainerSite {
  std::string owner;
  std::string network;  ///< network of the gang; "host": the node's own network
  uint64_t log_quota = 0;
  TaskLimits limits;  ///< of every task
  SamplingPlan sampling;
  /// Of the system calls of tasks without additional rights; empty: the engine's own alone.
  std::string filter;
  bool gives_gpus = false;  ///< the engine can give a container some of the host's GPUs
};

/// The name of the engine's volume for the task's volume `index`; empty: it is a path of the host.
std::string engine_volume(const std::string& owner, const std::string& job_id,
                          const launch::TaskPlan& plan, size_t index);

/// kInvalid, with all faults: volumes of the user in reserved places of the container, and storage
/// with invalid names.
base::Result<void> check_places(const launch::TaskPlan& plan);

/// The request to create the container of a task.
ContainerConfig container_config(const GangId& gang, const launch::TaskPlan& plan,
                                 const ContainerSite& site);

/// The plan of the shim, which is process 1 of the container.
ShimPlan shim_plan(const launch::TaskPlan& plan, const ContainerSite& site);

// Paths are from "/" on. Podman puts files into a running container in a tenth of the time: for a
// container that does not run, it mounts the root and starts a program in it. So only the programs
// are put in before the start, and the shim waits for the rest (TaskFolder::complete()).

/// The files without which the container cannot start: the programs that the task uses, and the
/// folder of the task.
std::vector<workspace::ArchiveEntry> programs_of(
    const launch::TaskPlan& plan, const std::vector<workspace::ArchiveEntry>& programs);

/// The files to put into the running container: the files of /generated, owned by the task's
/// account, links to those that must also be found elsewhere, the shim's plan, and the mark that
/// all of them have arrived.
std::vector<workspace::ArchiveEntry> files_of(const launch::TaskPlan& plan, const ShimPlan& shim);

/// Files of one volume of a container, with paths relative to it; "." is the volume itself.
struct VolumeFiles {
  std::string folder;
  std::vector<workspace::ArchiveEntry> entries;

  bool operator==(const VolumeFiles&) const = default;
};

/// Groups `files` by volume, because a container with a read-only root accepts files only in
/// volumes. Files outside Muster's (anonymous) volumes are left out. The volume with the mark is
/// the last one.
std::vector<VolumeFiles> by_volume(const std::vector<workspace::ArchiveEntry>& files,
                                   const std::vector<DockerMount>& mounts);

}  // namespace muster::engine
