// The paths of the API's resources, shared by client and server.
//
//   GET    /healthz, /readyz         -> 200 or 503; for anybody
//   GET    /openapi.json             -> this contract; for anybody
//   GET    /metrics                  -> Prometheus' text format
//   GET    /v1/info                  -> ServerInfo
//   POST   /v1/login                 TokenRequest -> 201 NewToken (a session)
//   POST   /v1/logout                -> 204; the token that was shown is revoked
//   GET    /v1/whoami                -> WhoAmI
//   GET    /v1/jobs                  -> JobPage; parameters in job_query.h
//   GET    /v1/list                  -> RowPage (job_rows.h); the parameters of GET /v1/jobs
//   GET    /v1/log-search            -> text/event-stream of hits; ?grep=P&hits=N&jobs=N&..., and the
//                                    filters of GET /v1/jobs
//   POST   /v1/job-file              the keys of a job file as JSON -> spec
//   POST   /v1/jobs                  spec -> 201 job; header idempotency-key
//                                    ?name_template=train-{n}&name_suffix=true&rerun_of=ID
//   POST   /v1/jobs?dry_run=true     spec -> Forecast; nothing is stored. With the key of an earlier
//                                    request: 201 job
//   GET    /v1/jobs/NAME             -> job
//   DELETE /v1/jobs/NAME             -> 204
//   PATCH  /v1/jobs/NAME             {"labels": {"NAME": "VALUE" or null}} -> job
//   POST   /v1/jobs/NAME/stop        -> job; ?now=true
//   POST   /v1/jobs/NAME/suspend     -> job
//   POST   /v1/jobs/NAME/resume      -> job
//   GET    /v1/jobs/NAME/explain     -> Explanation
//   GET    /v1/jobs/NAME/logs        -> text/event-stream; ?follow=true&task=T&rank=N&grep=P&...
//   GET    /v1/jobs/NAME/log-window  -> LogWindow (log_window.h); ?task=T&line=N&lines=M
//   GET    /v1/jobs/NAME/log-search  -> LogWindow with the hits; ?q=TEXT&task=T&...
//   GET    /v1/jobs/NAME/log-file    -> the log as text/plain; ?task=T
//   GET    /v1/jobs/NAME/exec        -> WebSocket (terminal.h); ?task=T&command=…
//   GET    /v1/jobs/NAME/attach      -> WebSocket (terminal.h); ?task=T
//   GET    /v1/jobs/NAME/copy        -> WebSocket (terminal.h); ?task=T&path=P&into=true
//   GET    /v1/jobs/NAME/forward     -> WebSocket (terminal.h); ?task=T&port=P
//   GET    /v1/jobs/NAME/metrics     -> {"series": [...]} (metric_wire.h)
//   GET    /v1/jobs/NAME/artifacts   -> {"artifacts": [...]} (artifact_wire.h); ?checksums=true
//   GET    /v1/jobs/NAME/artifact    -> its bytes; ?path=P
//   GET    /v1/sweeps                -> {"sweeps": [sweep, ...]}, without trials
//   POST   /v1/sweeps                SweepSpec -> 201 Sweep
//   POST   /v1/sweeps?dry_run=true   SweepSpec -> SweepPlan; nothing is stored
//   GET    /v1/sweeps/NAME           -> Sweep
//   DELETE /v1/sweeps/NAME           -> 204; with the jobs of its trials
//   POST   /v1/sweeps/NAME/stop      -> Sweep
//   POST   /v1/sweeps/NAME/pause     -> Sweep
//   POST   /v1/sweeps/NAME/resume    -> Sweep
//   GET    /v1/arrays                -> {"arrays": [...]} (array_wire.h); ?project=P
//   POST   /v1/jobs                  spec with an array -> 202 array
//   GET    /v1/arrays/NAME           -> array
//   DELETE /v1/arrays/NAME           -> 204
//   POST   /v1/arrays/NAME/stop      -> array; ?now=true
//   POST   /v1/arrays/NAME/suspend   -> array
//   POST   /v1/arrays/NAME/resume    -> array
//   POST   /v1/arrays/NAME/rerun     RerunRequest -> array: its failed members run again
//   GET    /v1/arrays/NAME/logs      -> text/event-stream; as the logs of a job
//   GET    /v1/schedules             -> {"schedules": [...]} (schedule_wire.h); ?project=P
//   POST   /v1/schedules             ScheduleSpec -> 201 Schedule
//   GET    /v1/schedules/NAME        -> Schedule
//   DELETE /v1/schedules/NAME        -> 204
//   POST   /v1/schedules/NAME/pause  -> Schedule
//   POST   /v1/schedules/NAME/resume -> Schedule
//   POST   /v1/schedules/NAME/run    -> 201 job
//   GET    /v1/queue                 -> JobPage, in the order they would be served; ?limit=&cursor=
//   GET    /v1/watch/jobs            -> text/event-stream; ?project=P&name=N&existing=&rows=
//   GET    /v1/watch/events          -> text/event-stream; ?project=P&name=N&since=TIME
//                                    &kind=evicted
//   GET    /v1/projects              -> {"projects": [project, ...]}
//   POST   /v1/projects              project -> 201 project
//   GET    /v1/projects/NAME         -> project
//   PATCH  /v1/projects/NAME         what changes -> project
//   DELETE /v1/projects/NAME         -> 204
//   GET    /v1/projects/NAME/usage              -> ProjectUsage, or CSV (usage.h); ?since=TIME
//                                    &until=TIME&format=csv
//   GET    /v1/projects/NAME/members            -> {"members": [{"user", "role"}]}
//   PUT    /v1/projects/NAME/members/USER       {"role"} -> 204
//   DELETE /v1/projects/NAME/members/USER       -> 204
//   GET    /v1/projects/NAME/secrets            -> {"secrets": [...]}, without values
//   PUT    /v1/projects/NAME/secrets/SECRET     {"value"} -> secret
//   DELETE /v1/projects/NAME/secrets/SECRET     -> 204
//   GET    /v1/projects/NAME/notifications      -> {"subscriptions": [...]} (notification_wire.h)
//   POST   /v1/projects/NAME/notifications      SubscriptionRequest -> 201 KeyedSubscription
//   DELETE /v1/projects/NAME/notifications/ID   -> 204
//   POST   /v1/projects/NAME/notifications/ID/rotate  -> KeyedSubscription
//   POST   /v1/projects/NAME/notifications/ID/test    -> PingResult
//   GET    /v1/projects/NAME/dead-letters       -> {"deliveries": [...]}
//   POST   /v1/projects/NAME/dead-letters/retry {"ids"} -> {"retried"}
//   GET    /v1/projects/NAME/trees/ID           -> TreeInfo (tree_wire.h)
//   POST   /v1/projects/NAME/chunks/missing     {"chunks"} -> {"chunks"}: the missing ones
//   PUT    /v1/projects/NAME/chunks             chunks (application/octet-stream) -> 204
//   PUT    /v1/projects/NAME/trees/ID           {"chunks"} of its manifest -> TreeInfo
//   GET    /v1/machine-types         -> {"machine_types": [...]} (machine_wire.h)
//   GET    /v1/users                 -> {"users": [user, ...]}
//   POST   /v1/users                 user -> 201 NewUser
//   GET    /v1/users/NAME            -> user
//   PATCH  /v1/users/NAME            UserChange -> user
//   DELETE /v1/users/NAME            -> 204
//   POST   /v1/users/NAME/invitation -> 201 NewToken
//   GET    /v1/tokens                -> {"tokens": [token, ...]}; ?user=U
//   POST   /v1/tokens                TokenRequest -> 201 NewToken
//   DELETE /v1/tokens/ID             -> 204
//   GET    /v1/audit                 -> {"records": [...]}; parameters in account_wire.h
//   POST   /v1/ui/codes              -> 201 PageCode: for `muster ui`
//   POST   /v1/ui/session            PageLogin -> WhoAmI and a cookie; for the web page
//   DELETE /v1/ui/port               -> 204; closes the loopback port of the web page
//   POST   /v1/what-if               WhatIfRequest -> WhatIf: starts of waiting jobs on more nodes
//   GET    /v1/nodes                 -> {"nodes": [node, ...]}
//   GET    /v1/nodes/NAME            -> node
//   POST   /v1/nodes/NAME/cordon     -> node
//   POST   /v1/nodes/NAME/uncordon   -> node
//   POST   /v1/nodes/NAME/drain      -> node
//   POST   /v1/shutdown              -> 202
//
// A job's NAME is its id, or its name within its project: if several jobs that the caller sees have
// that name, ?project=P selects the project; without it the answer is 409.
//
// The stream of logs consists of "log" events, each with a record, and an "end" event with the job.
#pragma once

#include <string>
#include <string_view>

namespace muster::api {

inline constexpr std::string_view kInfoPath = "/v1/info";
inline constexpr std::string_view kJobsPath = "/v1/jobs";
inline constexpr std::string_view kSweepsPath = "/v1/sweeps";
inline constexpr std::string_view kArraysPath = "/v1/arrays";
inline constexpr std::string_view kListPath = "/v1/list";
inline constexpr std::string_view kSchedulesPath = "/v1/schedules";
inline constexpr std::string_view kQueuePath = "/v1/queue";
inline constexpr std::string_view kProjectsPath = "/v1/projects";
inline constexpr std::string_view kNodesPath = "/v1/nodes";
inline constexpr std::string_view kShutdownPath = "/v1/shutdown";
inline constexpr std::string_view kMachineTypesPath = "/v1/machine-types";
inline constexpr std::string_view kUsersPath = "/v1/users";
inline constexpr std::string_view kTokensPath = "/v1/tokens";
inline constexpr std::string_view kAuditPath = "/v1/audit";
inline constexpr std::string_view kLoginPath = "/v1/login";
inline constexpr std::string_view kLogoutPath = "/v1/logout";
inline constexpr std::string_view kWhoAmIPath = "/v1/whoami";
inline constexpr std::string_view kPageCodesPath = "/v1/ui/codes";
inline constexpr std::string_view kPageSessionPath = "/v1/ui/session";
inline constexpr std::string_view kPagePortPath = "/v1/ui/port";
inline constexpr std::string_view kWatchJobsPath = "/v1/watch/jobs";
inline constexpr std::string_view kWatchEventsPath = "/v1/watch/events";
inline constexpr std::string_view kMetricsPath = "/metrics";
inline constexpr std::string_view kHealthPath = "/healthz";
inline constexpr std::string_view kReadyPath = "/readyz";
inline constexpr std::string_view kOpenApiPath = "/openapi.json";

/// A parameter for streams, for clients that cannot set the header last-event-id.
inline constexpr std::string_view kLastEventIdParameter = "last_event_id";

inline constexpr std::string_view kStopAction = "stop";
inline constexpr std::string_view kSuspendAction = "suspend";
inline constexpr std::string_view kResumeAction = "resume";
inline constexpr std::string_view kPauseAction = "pause";
inline constexpr std::string_view kRerunAction = "rerun";
inline constexpr std::string_view kRunAction = "run";
inline constexpr std::string_view kExplainAction = "explain";
inline constexpr std::string_view kLogsAction = "logs";
inline constexpr std::string_view kExecAction = "exec";
inline constexpr std::string_view kAttachAction = "attach";
inline constexpr std::string_view kCopyAction = "copy";
inline constexpr std::string_view kForwardAction = "forward";
inline constexpr std::string_view kMetricsAction = "metrics";
inline constexpr std::string_view kArtifactsAction = "artifacts";
inline constexpr std::string_view kArtifactAction = "artifact";
inline constexpr std::string_view kInvitationAction = "invitation";
inline constexpr std::string_view kCordonAction = "cordon";
inline constexpr std::string_view kUncordonAction = "uncordon";
inline constexpr std::string_view kDrainAction = "drain";

inline constexpr std::string_view kDryRun = "dry_run";
inline constexpr std::string_view kNameTemplate = "name_template";
inline constexpr std::string_view kNameSuffix = "name_suffix";
inline constexpr std::string_view kRerunOf = "rerun_of";
inline constexpr std::string_view kIdempotencyKey = "idempotency-key";
inline constexpr std::string_view kLogEvent = "log";
inline constexpr std::string_view kJobEvent = "job";      ///< a job in its present state
inline constexpr const char* kWithLines = "lines";        ///< of an array: also its lines
inline constexpr std::string_view kArrayEvent = "array";  ///< an array in its present state
inline constexpr std::string_view kSweepEvent = "sweep";  ///< the summary of a sweep
inline constexpr std::string_view kScheduleEvent = "schedule";
inline constexpr std::string_view kRowEvent = "row";          ///< the same as a JobRow
inline constexpr std::string_view kRemovedEvent = "removed";  ///< RemovedJob
inline constexpr std::string_view kReadyEvent = "ready";      ///< all existing jobs have been sent
inline constexpr std::string_view kResetEvent = "reset";      ///< everything sent before is invalid
inline constexpr std::string_view kHistoryEvent = "event";    ///< JobEvent
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

/// /v1/projects/p/secrets/API_KEY, /v1/projects/p/members/ada.
inline std::string below_project(std::string_view project, std::string_view what,
                                 std::string_view name = {}) {
  std::string path = path_of(kProjectsPath, project, what);
  if (!name.empty()) path += "/" + std::string(name);
  return path;
}

/// /v1/users/ada, or /v1/users/ada/invitation.
inline std::string user_path(std::string_view name, std::string_view action = {}) {
  return path_of(kUsersPath, name, action);
}

/// /v1/nodes/n1, or /v1/nodes/n1/cordon.
inline std::string node_path(std::string_view name, std::string_view action = {}) {
  return path_of(kNodesPath, name, action);
}

}  // namespace muster::api
