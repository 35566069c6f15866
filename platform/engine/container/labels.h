// The labels by which containers, networks and volumes are known as Muster's, and as whose.
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
/// As engines list networks and volumes.
using NamedWithLabels = std::vector<std::pair<std::string, Labels>>;

Labels labels_of_task(const std::string& owner, const Gang& gang, const std::string& task);
Labels labels_of_gang(const std::string& owner, const Gang& gang);
/// Of what outlives an attempt: volumes of a job.
Labels labels_of_job(const std::string& owner, const std::string& job_id);

/// As DockerClient's filters want them: "name=value".
std::vector<std::string> as_filters(const Labels& labels);

struct LabelledTask {
  Gang gang;
  std::string task;

  bool operator==(const LabelledTask&) const = default;
};
/// nullopt: it is none of this owner's tasks.
std::optional<LabelledTask> task_of(const std::string& owner, const Labels& labels);

/// Of a task; of a network: whose gang it is.
std::optional<Gang> gang_of(const std::string& owner, const Labels& labels);
/// Of a volume; empty: it is no volume of a job of this owner's.
std::string job_of(const std::string& owner, const Labels& labels);

// Names of the engine, where every name is taken by at most one. Two things that differ in any
// part have names that differ; a letter that names cannot have stands in them as _XX.

/// "muster-JOB-ATTEMPT-TASK"
std::string container_name(const Gang& gang, std::string_view task);
std::string network_name(const Gang& gang);
/// `what`: "artifacts", "tree-0"
std::string volume_name(const std::string& job_id, std::string_view what);
/// Projects of two servers may have the same name.
std::string storage_name(const std::string& owner, const std::string& project,
                         std::string_view storage);

}  // namespace muster::engine
