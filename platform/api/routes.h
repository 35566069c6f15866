// Where the API's resources are: shared by the client, which asks, and the server, which answers.
//
//   GET    /v1/info                  -> ServerInfo
//   GET    /v1/jobs                  -> {"jobs": [job, ...]}
//   POST   /v1/jobs                  spec -> 201 job; header idempotency-key
//   POST   /v1/jobs?dry_run=true     spec -> Forecast; nothing is stored
//   GET    /v1/jobs/NAME             -> job
//   DELETE /v1/jobs/NAME             -> 204
//   POST   /v1/jobs/NAME/stop        -> job; ?now=true
//   POST   /v1/jobs/NAME/suspend     -> job
//   POST   /v1/jobs/NAME/resume      -> job
//   GET    /v1/jobs/NAME/explain     -> Explanation
//   GET    /v1/jobs/NAME/logs        -> text/event-stream; ?follow=true&task=T&since=TIME&tail=N
//   GET    /v1/queue                 -> {"jobs": [job, ...]}, in the order they would be served
//   GET    /v1/projects              -> {"projects": [project, ...]}
//   POST   /v1/projects              project -> 201 project
//   GET    /v1/projects/NAME         -> project
//   PATCH  /v1/projects/NAME         what changes -> project
//   DELETE /v1/projects/NAME         -> 204
//   GET    /v1/nodes                 -> {"nodes": [node, ...]}
//   GET    /v1/nodes/NAME            -> node
//   POST   /v1/nodes/NAME/cordon     -> node
//   POST   /v1/nodes/NAME/uncordon   -> node
//   POST   /v1/nodes/NAME/drain      -> node
//   POST   /v1/shutdown              -> 202
//
// The stream of logs holds "log" events, each with a record, and last an "end" event with the job.
#pragma once

#include <string>
#include <string_view>

namespace muster::api {

inline constexpr std::string_view kInfoPath = "/v1/info";
inline constexpr std::string_view kJobsPath = "/v1/jobs";
inline constexpr std::string_view kQueuePath = "/v1/queue";
inline constexpr std::string_view kProjectsPath = "/v1/projects";
inline constexpr std::string_view kNodesPath = "/v1/nodes";
inline constexpr std::string_view kShutdownPath = "/v1/shutdown";

inline constexpr std::string_view kStopAction = "stop";
inline constexpr std::string_view kSuspendAction = "suspend";
inline constexpr std::string_view kResumeAction = "resume";
inline constexpr std::string_view kExplainAction = "explain";
inline constexpr std::string_view kLogsAction = "logs";
inline constexpr std::string_view kCordonAction = "cordon";
inline constexpr std::string_view kUncordonAction = "uncordon";
inline constexpr std::string_view kDrainAction = "drain";

inline constexpr std::string_view kDryRun = "dry_run";
inline constexpr std::string_view kIdempotencyKey = "idempotency-key";
inline constexpr std::string_view kLogEvent = "log";
inline constexpr std::string_view kEndEvent = "end";
inline constexpr std::string_view kProblemType = "application/problem+json";

inline std::string path_of(std::string_view resources, std::string_view name,
                           std::string_view action) {
  std::string path = std::string(resources) + "/" + std::string(name);
  if (!action.empty()) path += "/" + std::string(action);
  return path;
}

/// /v1/jobs/dist, or /v1/jobs/dist/stop.
inline std::string job_path(std::string_view name, std::string_view action = {}) {
  return path_of(kJobsPath, name, action);
}

inline std::string project_path(std::string_view name) {
  return path_of(kProjectsPath, name, {});
}

/// /v1/nodes/n1, or /v1/nodes/n1/cordon.
inline std::string node_path(std::string_view name, std::string_view action = {}) {
  return path_of(kNodesPath, name, action);
}

}  // namespace muster::api
