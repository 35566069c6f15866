// The typed client of the HTTP API, which the command line uses.
//
// Blocking; not thread-safe. An error in the server's answer is returned with the same code,
// sentences and faults; but if a server on TLS rejects the token (401) and a login helps, the
// advice contains the server's address. kUnavailable: no answer.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/account_wire.h"
#include "api/array_wire.h"
#include "api/cluster_wire.h"
#include "api/file_wire.h"
#include "api/job_query.h"
#include "api/job_rows.h"
#include "api/notification_wire.h"
#include "api/schedule_wire.h"
#include "api/terminal.h"
#include "api/usage.h"
#include "api/wire.h"
#include "base/result.h"
#include "http/client.h"
#include "http/websocket.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/log_record.h"
#include "job/machine_type.h"
#include "job/metric.h"
#include "job/node.h"
#include "job/project.h"

namespace muster::sweep {
struct Sweep;
struct SweepPlan;
struct SweepSpec;
struct SweepSummary;
}  // namespace muster::sweep

namespace muster::api {

class Client {
 public:
  /// The server of this user.
  explicit Client(const std::filesystem::path& socket) : http_(socket), place_(socket) {}
  /// A server on TLS. `token` is sent with every request, and appears in no error; empty: no token.
  Client(const http::TlsEndpoint& endpoint, const std::string& token);

  /// The project in which names of jobs are looked up from now on; empty: any, and the server
  /// rejects ambiguous names.
  void set_project(std::string project) { project_ = std::move(project); }

  /// Interrupts every request from now on, except streams, which have a wake of their own: see
  /// http::BlockingClient::set_wake().
  void set_wake(http::Wake wake) { http_.set_wake(std::move(wake)); }

  Result<ServerInfo> info();

  /// How a job is submitted, beside its spec.
  struct SubmitOptions {
    std::string name_template = {};  ///< "train-{n}": replaces the name; the server chooses n
    bool name_suffix = false;        ///< a taken name becomes NAME-2, NAME-3 ...
    std::string rerun_of = {};       ///< id of the job that it repeats
  };
  /// `idempotency_key`: new for each submission. If it is sent again with the same key, the first
  /// answer is returned and no second job is created.
  Result<job::Job> submit(const job::JobSpec& spec, const std::string& idempotency_key,
                          const SubmitOptions& options);
  Result<job::Job> submit(const job::JobSpec& spec, const std::string& idempotency_key) {
    return submit(spec, idempotency_key, {});
  }

  /// What submit() would do with this spec now. Nothing is stored.
  Result<job::Forecast> forecast(const job::JobSpec& spec, const SubmitOptions& options);
  Result<job::Forecast> forecast(const job::JobSpec& spec) { return forecast(spec, {}); }
  /// The same for a submission with this key. Nothing: an earlier request with the key has submitted
  /// the job or the array.
  Result<std::optional<job::Forecast>> forecast_unless_submitted(const job::JobSpec& spec,
                                                                 const std::string& idempotency_key,
                                                                 const SubmitOptions& options);

  /// All jobs of the query, page by page.
  Result<std::vector<job::Job>> list_all(JobQuery query);
  /// One page.
  Result<JobPage> list(const JobQuery& query);
  /// The same as rows, together with arrays, sweeps and schedules.
  Result<RowPage> list_rows(const JobQuery& query);
  Result<job::Job> get(const std::string& name);

  // Arrays: many jobs from one spec.                                   client_arrays.cc

  /// As submit(), for a spec with an array.
  Result<job::Array> submit_array(const job::JobSpec& spec, const std::string& idempotency_key,
                                  const SubmitOptions& options);
  Result<job::Array> submit_array(const job::JobSpec& spec, const std::string& idempotency_key) {
    return submit_array(spec, idempotency_key, {});
  }
  /// Oldest first.
  Result<std::vector<job::Array>> arrays(const std::optional<std::string>& project);
  Result<job::Array> array(const std::string& name);
  /// With its lines in the spec.
  Result<job::Array> array_with_lines(const std::string& name);
  /// As stop(), suspend(), resume() and remove(), for all members.
  Result<job::Array> stop_array(const std::string& name, bool now);
  Result<job::Array> suspend_array(const std::string& name);
  Result<job::Array> resume_array(const std::string& name);
  Result<void> remove_array(const std::string& name);
  /// The members that failed or were stopped run again. kConflict: no member failed or was stopped.
  struct ArrayLogHandlers {
    /// The record's task is "train[17]", or "train[17]/worker-1". False: stop.
    std::function<bool(const job::LogRecord&)> on_record;
    std::function<void(const job::Array&)> on_array;  ///< with query.follow: the counts changed
  };
  /// The logs of all members: one after another, or with query.follow merged until all have ended.
  /// kUnavailable: the connection broke; the stream cannot be continued.
  Result<job::Array> array_logs(const std::string& name, const job::LogQuery& query,
                                const ArrayLogHandlers& handlers, const http::Wake& wake = {});
  Result<job::Array> rerun_failed(const std::string& name, const RerunRequest& changes);

  /// All waiting jobs, in the order in which they would be served now: page by page.
  Result<std::vector<job::Job>> queue();
  /// Why the job waits, or what was done to it.
  Result<job::Explanation> explain(const std::string& name);

  /// Asks the job to end: SIGTERM and its grace, or SIGKILL at once with `now`. Idempotent.
  Result<job::Job> stop(const std::string& name, bool now);

  /// Releases the job's resources and holds it until resume(). Idempotent; kConflict after it has
  /// ended.
  Result<job::Job> suspend(const std::string& name);
  Result<job::Job> resume(const std::string& name);

  /// Removes an ended job with its logs; kConflict while it runs.
  Result<void> remove(const std::string& name);

  /// The metrics of a job that match the query. client_metrics.cc
  Result<std::vector<job::MetricSeries>> metrics(const std::string& name,
                                                 const job::MetricQuery& query);

  /// Passes on the job's log records in order until there are no more (with query.follow: until the
  /// job has ended), and returns the job in its state then. `on_record` returns false to leave
  /// early; `wake`: see http::BlockingClient.
  Result<job::Job> logs(const std::string& name, const job::LogQuery& query,
                        const std::function<bool(const job::LogRecord&)>& on_record,
                        const http::Wake& wake = {});

  struct LogHandlers {
    std::function<bool(const job::LogRecord&)> on_record;  ///< false: stop
    /// All records so far lie before this place: use it to continue from there.
    std::function<void(const std::string& place)> on_place;
  };
  /// The same, from a place on; empty: as in the query.
  Result<job::Job> logs(const std::string& name, const job::LogQuery& query,
                        const std::string& place, const LogHandlers& handlers,
                        const http::Wake& wake = {});

  /// Runs a program in a task of a running job. The messages are described in api/terminal.h.
  Result<std::unique_ptr<http::WebSocketClient>> exec(const std::string& name,
                                                      const ExecRequest& request);

  /// The same for the task's own program, for copying files, and for a port.
  Result<std::unique_ptr<http::WebSocketClient>> attach(const std::string& name,
                                                        const AttachRequest& request);
  Result<std::unique_ptr<http::WebSocketClient>> copy(const std::string& name,
                                                      const CopyRequest& request);
  Result<std::unique_ptr<http::WebSocketClient>> forward(const std::string& name,
                                                         const ForwardRequest& request);

  // The files in a job's artifact folder. client_artifacts.cc

  /// One page.
  Result<ArtifactPage> artifacts(const std::string& name, const ArtifactQuery& query);

  struct ArtifactRequest {
    std::string path;    ///< as in the list
    int64_t from = 0;    ///< the first byte
    std::string sha256;  ///< only if the file still has this checksum; empty: any content
  };
  /// Passes on its bytes until there are no more, `on_bytes` returns false or `wake` ends the call.
  /// kConflict: the file has changed or was removed. kUnavailable: interrupted, for example because
  /// the file was truncated.
  Result<void> artifact(const std::string& name, const ArtifactRequest& file,
                        const std::function<bool(std::string_view)>& on_bytes,
                        const http::Wake& wake = {});

  struct EventQuery {
    std::optional<std::string> project;
    std::optional<std::string> name;  ///< of an existing job: until it has ended
    std::optional<base::Time> since;  ///< nothing: only events from now on
  };
  /// Passes on the events of jobs, in order, until `on_event` returns false, `wake` ends the call,
  /// or the named job has ended (then it is returned). `place` is updated: after a lost connection
  /// (kUnavailable), repeat the call with it. Empty: as in the query.
  Result<std::optional<job::Job>> watch_events(const EventQuery& query, std::string& place,
                                               const std::function<bool(const JobEvent&)>& on_event,
                                               const http::Wake& wake = {});

  struct WatchHandlers {  ///< each may be empty; false: stop
    std::function<bool(const job::Job&)> on_job;
    std::function<bool(const job::Array&)> on_array = {};
    std::function<bool(const sweep::SweepSummary&)> on_sweep = {};
    std::function<bool(const RemovedJob&)> on_removed;
    std::function<bool()> on_ready;  ///< all existing jobs have been passed on
    std::function<bool()> on_reset;  ///< all earlier jobs are invalid: all jobs follow again
  };
  struct WatchQuery {
    std::optional<std::string> project;
    std::optional<std::string> name;  ///< only jobs of this name
  };
  /// Passes on all jobs of the query, then each change. `place` as above; if it is empty, all
  /// jobs are passed on again, and jobs that are not among them were removed.
  Result<void> watch_jobs(const WatchQuery& query, std::string& place,
                          const WatchHandlers& handlers, const http::Wake& wake = {});

  /// Calls `on_change` when the watch has begun, and for each change of a job (of the project) after
  /// that, until it returns false or `wake` ends the call. `place` as above.
  Result<void> watch_changes(const std::optional<std::string>& project, std::string& place,
                             const std::function<bool()>& on_change, const http::Wake& wake = {});

  /// Sets the labels that have a value, and removes those without. Tags have the value "".
  Result<job::Job> set_labels(const std::string& name,
                              const std::map<std::string, std::optional<std::string>>& labels);

  // Files for jobs (tree_wire.h), and machines by name.                client_trees.cc

  /// kNotFound: the server does not have the tree.
  Result<TreeInfo> tree(const std::string& project, const std::string& id);
  /// The chunks of `chunks` that the server lacks; of any number, in several requests.
  Result<std::vector<std::string>> missing_chunks(const std::string& project,
                                                  const std::vector<std::string>& chunks);
  /// `body`: as chunks_in() of file_wire.h reads it, at most kMostChunkBytes.
  Result<void> put_chunks(const std::string& project, std::string body);
  Result<TreeInfo> keep_tree(const std::string& project, const std::string& id,
                             const std::vector<std::string>& manifest_chunks);
  Result<job::MachineTypes> machine_types();

  // Sweeps (sweep_wire.h).                                              client_sweeps.cc

  Result<sweep::Sweep> create_sweep(const sweep::SweepSpec& spec);
  /// What create_sweep() would run. Nothing is stored.
  Result<sweep::SweepPlan> plan_sweep(const sweep::SweepSpec& spec);
  Result<std::vector<sweep::SweepSummary>> sweeps();
  Result<sweep::Sweep> sweep(const std::string& name);
  /// `action`: "stop", "pause" or "resume".
  Result<sweep::Sweep> change_sweep(const std::string& name, std::string_view action);
  /// kConflict: the sweep has not ended.
  Result<void> remove_sweep(const std::string& name);

  Result<std::vector<job::ProjectStatus>> projects();
  Result<job::ProjectStatus> project(const std::string& name);
  Result<job::ProjectStatus> create_project(const std::string& name, const ProjectChange& change);
  /// Changes the fields that are set in `change`.
  Result<job::ProjectStatus> patch_project(const std::string& name, const ProjectChange& change);
  /// kConflict: the project has jobs that have not ended, or subprojects.
  Result<void> remove_project(const std::string& name);

  /// `query.as_csv` is ignored.
  Result<ProjectUsage> usage(const std::string& project, const UsageQuery& query);

  Result<std::vector<job::Node>> nodes();
  Result<job::Node> node(const std::string& name);
  /// A cordoned node accepts no new tasks; a drained node is cordoned, and its jobs are evicted.
  Result<job::Node> cordon(const std::string& name);
  Result<job::Node> uncordon(const std::string& name);
  Result<job::Node> drain(const std::string& name);

  /// Asks the server to stop when it is idle; jobs continue without it.
  Result<void> shut_down();

  // Accounts.                                                          client_accounts.cc

  /// A session for the user of this client's token. An invitation is used up.
  Result<NewToken> log_in(const TokenRequest& request);
  /// Revokes this client's token.
  Result<void> log_out();
  Result<WhoAmI> who_am_i();
  /// A code for the web page; opens the page's loopback port if the server has no TLS.
  Result<PageCode> page_code();
  /// Closes that port.
  Result<void> close_page();

  Result<std::vector<access::User>> users();
  Result<access::User> user(const std::string& name);
  Result<NewUser> create_user(const access::User& user);
  Result<access::User> patch_user(const std::string& name, const UserChange& change);
  Result<void> remove_user(const std::string& name);
  /// Another invitation: for a new machine, or after the first has expired.
  Result<NewToken> invite_user(const std::string& name);

  /// The tokens of `user`; nothing: all that the caller may see.
  Result<std::vector<access::Token>> tokens(const std::optional<std::string>& user);
  Result<NewToken> create_token(const TokenRequest& request);
  Result<void> revoke_token(const std::string& id);

  Result<std::map<std::string, access::Role>> members(const std::string& project);
  Result<void> set_member(const std::string& project, const std::string& user, access::Role role);
  Result<void> remove_member(const std::string& project, const std::string& user);

  Result<std::vector<access::Secret>> secrets(const std::string& project);
  Result<access::Secret> set_secret(const std::string& project, const std::string& name,
                                    std::string_view value);
  Result<void> remove_secret(const std::string& project, const std::string& name);

  // Schedules (schedule_wire.h).                                       client_schedules.cc

  Result<job::Schedule> create_schedule(const job::ScheduleSpec& spec);
  /// `project`: empty: all projects that the caller sees.
  Result<std::vector<job::Schedule>> schedules(const std::string& project);
  Result<job::Schedule> schedule(const std::string& name);
  Result<job::Schedule> pause_schedule(const std::string& name);
  Result<job::Schedule> resume_schedule(const std::string& name);
  /// The run: a job, or an array if the runs of the schedule are arrays.
  using ScheduleRunStarted = std::variant<job::Job, job::Array>;
  Result<ScheduleRunStarted> run_schedule(const std::string& name);
  Result<void> remove_schedule(const std::string& name);

  // Notifications (notification_wire.h).                                client_notifications.cc

  Result<std::vector<job::Subscription>> subscriptions(const std::string& project);
  Result<KeyedSubscription> subscribe(const std::string& project,
                                      const SubscriptionRequest& request);
  Result<void> unsubscribe(const std::string& project, const std::string& id);
  Result<KeyedSubscription> rotate_subscription(const std::string& project, const std::string& id);
  Result<PingResult> ping_subscription(const std::string& project, const std::string& id);
  Result<std::vector<job::Delivery>> dead_letters(const std::string& project);
  /// Retries the deliveries with these ids, or all; returns their number.
  Result<int> retry_dead_letters(const std::string& project, const std::vector<std::string>& ids);

  /// One page, newest first.
  Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query);

 private:
  /// `request` with the token. Every request passes through this function, including streams.
  http::Request authorized(http::Request request) const;
  /// For one job: with the project of set_project().
  Result<std::unique_ptr<http::WebSocketClient>> open_socket(const std::string& name,
                                                             std::string_view action,
                                                             Parameters parameters);
  http::Request array_request(std::string method, const std::string& name,
                              std::string_view action = {}, std::string body = {}) const;
  Result<job::Array> array_call(const http::Request& request);
  http::Request job_request(std::string method, const std::string& name,
                            std::string_view action = {}) const;
  http::Request sweep_request(std::string method, const std::string& name,
                              std::string_view action) const;
  /// The error in an answer with status 400 or above.
  base::Error problem(const http::Request& request, const http::Response& response) const;
  Result<http::Response> call(const http::Request& request);
  Result<job::Job> act_on_job(const std::string& name, std::string_view action);
  Result<http::Response> call_schedule(std::string method, const std::string& name,
                                       std::string_view action);
  Result<job::Node> act_on_node(const std::string& name, std::string_view action);

  http::BlockingClient http_;
  std::variant<std::filesystem::path, http::TlsEndpoint> place_;  ///< for additional connections
  std::string authorization_;  ///< the header; empty over the unix socket
  std::string server_;         ///< https://HOST:PORT; empty over the unix socket
  std::string project_;
};

}  // namespace muster::api
