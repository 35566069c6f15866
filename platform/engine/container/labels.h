// Labels and names of containers, networks and volumes, which identify the owner, job and task.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace muster::engine {

inline constexpr const char* kOwnerLabel = "org.muster.owner";  ///< ContainerEngineOptions::owner
inline constexpr const char* kJobLabel = "org.muster.job";
inline constexpr const char* kAttemptLabel = "org.muster.attempt";
inline constexpr const char* kTaskLabel = "org.muster.task";

using Labels = std::map<std::string, std::string>;
/// Names and labels of networks or volumes, as engines list them.
using NamedWithLabels = std::vector<std::pair<std::string, Labels>>;

Labels labels_of_task(const std::string& owner, const GangId& gang, const std::string& task);
Labels labels_of_gang(const std::string& owner, const GangId& gang);
/// For things that outlive an attempt: the volumes of a job.
Labels labels_of_job(const std::string& owner, const std::string& job_id);

/// The form of DockerClient's filters: "name=value".
std::vector<std::string> as_filters(const Labels& labels);

struct LabelledTask {
  GangId gang;
  std::string task;

  bool operator==(const LabelledTask&) const = default;
};
/// nullopt: not a task of this owner.
std::optional<LabelledTask> task_of(const std::string& owner, const Labels& labels);

/// The gang of a container or network. nullopt: not of this owner.
std::optional<GangId> gang_of(const std::string& owner, const Labels& labels);
/// The job of a volume; empty: not of this owner, or not of a job.
std::string job_of(const std::string& owner, const Labels& labels);

// Names are unique on an engine. Different arguments give different names: characters that an
// engine does not allow are encoded as _XX.

/// How many names are tried if the first ones belong to others.
inline constexpr int kMostNames = 4;
/// The name for attempt `tries`, counted from 0: "NAME", "NAME-2", "NAME-3", ...
std::string numbered_name(const std::string& name, int tries);

/// "muster-JOB-ATTEMPT-TASK"
std::string container_name(const GangId& gang, std::string_view task);
std::string network_name(const GangId& gang);
/// `what`: "artifacts", "tree-0"
std::string volume_name(const std::string& job_id, std::string_view what);
/// Contains the owner, because two servers may have projects of the same name.
std::string storage_name(const std::string& owner, const std::string& project,
                         std::string_view storage);

}  // namespace muster::engine
