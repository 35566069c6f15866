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
inline constexpr const char* kProgramsFolder = "/muster/bin";  ///< the programs, 0755
inline constexpr const char* kTaskFolder = "/muster/task";     ///< of the task's account, 0700
inline constexpr const char* kGeneratedFolder = "/generated";

struct ContainerSite {
  std::string owner;
  std::string network;  ///< of the gang; "host": the node's own
  uint64_t log_quota = 0;
  SamplingPlan sampling;
};

/// How the container of a task is made.
ContainerConfig container_config(const Gang& gang, const launch::TaskPlan& plan,
                                 const ContainerSite& site);

/// The plan of the shim that is its process 1.
ShimPlan shim_plan(const launch::TaskPlan& plan, const ContainerSite& site);

/// What is unpacked at "/": the programs, the shim's plan, the files of /generated, owned by the
/// task's account.
std::vector<workspace::ArchiveEntry> files_of(const launch::TaskPlan& plan, const ShimPlan& shim,
                                              const std::vector<workspace::ArchiveEntry>& programs);

}  // namespace muster::engine
