// Where the API's resources are: shared by the client, which asks, and the server, which answers.
//
//   GET    /v1/info                  -> ServerInfo
//   GET    /v1/jobs                  -> {"jobs": [job, ...]}
//   POST   /v1/jobs                  spec -> 201 job; header idempotency-key
//   GET    /v1/jobs/NAME             -> job
//   DELETE /v1/jobs/NAME             -> 204
//   POST   /v1/jobs/NAME/stop        -> job; ?now=true
//   GET    /v1/jobs/NAME/logs        -> text/event-stream; ?follow=true&task=T&since=TIME&tail=N
//   POST   /v1/shutdown              -> 202
//
// The stream of logs holds "log" events, each with a record, and last an "end" event with the job.
#pragma once

#include <string>
#include <string_view>

namespace muster::api {

inline constexpr std::string_view kInfoPath = "/v1/info";
inline constexpr std::string_view kJobsPath = "/v1/jobs";
inline constexpr std::string_view kShutdownPath = "/v1/shutdown";
inline constexpr std::string_view kStopAction = "stop";
inline constexpr std::string_view kLogsAction = "logs";

inline constexpr std::string_view kIdempotencyKey = "idempotency-key";
inline constexpr std::string_view kLogEvent = "log";
inline constexpr std::string_view kEndEvent = "end";
inline constexpr std::string_view kProblemType = "application/problem+json";

/// /v1/jobs/dist, or /v1/jobs/dist/stop.
inline std::string job_path(std::string_view name, std::string_view action = {}) {
  std::string path = std::string(kJobsPath) + "/" + std::string(name);
  if (!action.empty()) path += "/" + std::string(action);
  return path;
}

}  // namespace muster::api
