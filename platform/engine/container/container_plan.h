// From the plan of a task to a container: what its engine is asked for, and which files are put
// into it before it starts.
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

// What a task finds of Muster in its container. Both are volumes of its own, removed with it.
inline constexpr const char* kMusterFolder = "/muster";        ///< TaskFolder: plan, log, exit
inline constexpr const char* kRemoteShell = "muster-rsh";      ///< one of the programs
inline constexpr const char* kProgramsFolder = "/muster/bin";  ///< the programs, 0755
inline constexpr const char* kTaskFolder = "/muster/task";     ///< of the task's account, 0700
inline constexpr const char* kGeneratedFolder = "/generated";

struct ContainerSite {
  std::string owner;
  std::string network;  ///< of the gang; "host": the node's own
  uint64_t log_quota = 0;
  SamplingPlan sampling;
  bool gives_gpus = false;  ///< the engine can show a container some of the host's GPUs
};

/// The volume of the engine that this one of the task's volumes is; empty: it is a path of the
/// host.
std::string engine_volume(const std::string& owner, const std::string& job_id,
                          const launch::TaskPlan& plan, size_t index);

/// Of volumes of the user's that would lie in a place that is the container's own, and storage
/// whose name is none: kInvalid, with all of them.
base::Result<void> check_places(const launch::TaskPlan& plan);

/// How the container of a task is made.
ContainerConfig container_config(const Gang& gang, const launch::TaskPlan& plan,
                                 const ContainerSite& site);

/// The plan of the shim that is its process 1.
ShimPlan shim_plan(const launch::TaskPlan& plan, const ContainerSite& site);

/// What is put into it, by paths from "/" on: the programs that it uses, the shim's plan, the files
/// of /generated, owned by the task's account, and links to those that are found elsewhere, too.
std::vector<workspace::ArchiveEntry> files_of(const launch::TaskPlan& plan, const ShimPlan& shim,
                                              const std::vector<workspace::ArchiveEntry>& programs);

/// Files of one volume of a container, by paths from there on; "." is the volume itself.
struct VolumeFiles {
  std::string folder;
  std::vector<workspace::ArchiveEntry> entries;

  bool operator==(const VolumeFiles&) const = default;
};

/// `files` by the volume that each lies in: a container whose root is read-only takes none
/// elsewhere. Those that lie in no volume of Muster's own (anonymous ones) are left out.
std::vector<VolumeFiles> by_volume(const std::vector<workspace::ArchiveEntry>& files,
                                   const std::vector<DockerMount>& mounts);

}  // namespace muster::engine
