// The typed face of the HTTP API: what the command line has instead of requests.
//
// Blocking; not thread-safe. An error that the server answered comes back as it was there: same
// code, sentences and faults; but where a server on TLS takes no such token (401) and a login mends
// that, the advice is to log in there, by its address. kUnavailable: nobody answers.
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
#include "api/cluster_wire.h"
#include "api/file_wire.h"
#include "api/job_query.h"
#include "api/notification_wire.h"
#include "api/terminal.h"
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

namespace muster::api {

class Client {
 public:
  /// The server of this user.
  explicit Client(const std::filesystem::path& socket) : http_(socket), place_(socket) {}
  /// A server on TLS. `token` goes with every request, and into no error; empty: none is shown.
  Client(const http::TlsEndpoint& endpoint, const std::string& token);

  /// Whose job is meant from now on where several projects have one of a name; empty: nothing is
  /// said, and the server refuses such a name.
  void set_project(std::string project) { project_ = std::move(project); }

  Result<ServerInfo> info();

  /// `idempotency_key`: fresh for each intent. Sent again with the same key, the first answer comes
  /// back and no second job is made.
  Result<job::Job> submit(const job::JobSpec& spec, const std::string& idempotency_key);

  /// What submit() would do with this spec now. Nothing is stored.
  Result<job::Forecast> forecast(const job::JobSpec& spec);

  /// All that there are, page by page.
  Result<std::vector<job::Job>> list();
  Result<std::vector<job::Job>> list_all(JobQuery query);
  /// One page.
  Result<JobPage> list(const JobQuery& query);
  Result<job::Job> get(const std::string& name);

  /// The jobs that wait, in the order in which they would be served as things are.
  Result<std::vector<job::Job>> queue();
  /// Why it waits, or what was done to it.
  Result<job::Explanation> explain(const std::string& name);

  /// Asks the job to end: SIGTERM and its grace, or SIGKILL at once with `now`. Idempotent.
  Result<job::Job> stop(const std::string& name, bool now);

  /// Frees the job's room and holds it back until resume(). Idempotent; kConflict once it has
  /// ended.
  Result<job::Job> suspend(const std::string& name);
  Result<job::Job> resume(const std::string& name);

  /// Removes an ended job with its logs; kConflict while it runs.
  Result<void> remove(const std::string& name);

  /// What was measured of it, as far as the query asks.                   client_metrics.cc
  Result<std::vector<job::MetricSeries>> metrics(const std::string& name,
                                                 const job::MetricQuery& query);

  /// Hands over the job's log records in order until there are no more (with query.follow: until
  /// the job has ended), and returns the job as it then is. `on_record` returns false to leave
  /// early; `wake` as in http::BlockingClient.
  Result<job::Job> logs(const std::string& name, const job::LogQuery& query,
                        const std::function<bool(const job::LogRecord&)>& on_record,
                        const http::Wake& wake = {});

  struct LogHandlers {
    std::function<bool(const job::LogRecord&)> on_record;  ///< false: no more
    /// All that came before stands in front of this place: ask with it to go on from there.
    std::function<void(const std::string& place)> on_place;
  };
  /// The same, from a place on; empty: as the query has it.
  Result<job::Job> logs(const std::string& name, const job::LogQuery& query,
                        const std::string& place, const LogHandlers& handlers,
                        const http::Wake& wake = {});

  /// Runs a program in a task of a job that runs. What is said then: api/terminal.h.
  Result<std::unique_ptr<http::WebSocketClient>> exec(const std::string& name,
                                                      const ExecRequest& request);

  /// The same for the task's own program, for files, and for a port.
  Result<std::unique_ptr<http::WebSocketClient>> attach(const std::string& name,
                                                        const AttachRequest& request);
  Result<std::unique_ptr<http::WebSocketClient>> copy(const std::string& name,
                                                      const CopyRequest& request);
  Result<std::unique_ptr<http::WebSocketClient>> forward(const std::string& name,
                                                         const ForwardRequest& request);

  // The files that a job has left in its artifacts folder.             client_artifacts.cc

  /// One page.
  Result<ArtifactPage> artifacts(const std::string& name, const ArtifactQuery& query);

  struct ArtifactWish {
    std::string path;    ///< as the list has it
    int64_t from = 0;    ///< from this byte on
    std::string sha256;  ///< only where it is this file still; empty: whatever is there
  };
  /// Hands over its bytes until there are no more, `on_bytes` returns false or `wake` ends it.
  /// kConflict: it is another file now, or none. kUnavailable: cut off, as where it was shortened.
  Result<void> artifact(const std::string& name, const ArtifactWish& wish,
                        const std::function<bool(std::string_view)>& on_bytes,
                        const http::Wake& wake = {});

  struct EventQuery {
    std::optional<std::string> project;
    std::optional<std::string> name;  ///< of a job that exists now: until it has ended
    std::optional<base::Time> since;  ///< nothing: what happens from now on
  };
  /// Hands over what happens to jobs, in order, until `on_event` returns false or `wake` ends it,
  /// or the job that is named has ended (then it is returned). `place` is how far it has come:
  /// where the server went away (kUnavailable), ask again with it. Empty: as the query has it.
  Result<std::optional<job::Job>> watch_events(const EventQuery& query, std::string& place,
                                               const std::function<bool(const JobEvent&)>& on_event,
                                               const http::Wake& wake = {});

  struct WatchHandlers {  ///< each may be empty; false: no more
    std::function<bool(const job::Job&)> on_job;
    std::function<bool(const RemovedJob&)> on_removed;
    std::function<bool()> on_ready;  ///< all that there were have been handed over
    std::function<bool()> on_reset;  ///< what was handed over is void: all follow anew
  };
  /// Hands over all jobs (of query.project), then each as it changes. `place` as above; where it is
  /// empty, all jobs are handed over anew, and those that are not among them are gone.
  Result<void> watch_jobs(const JobQuery& query, std::string& place, const WatchHandlers& handlers,
                          const http::Wake& wake = {});

  /// Sets the labels that have a value, and takes away those that have none. Tags: "" as the value.
  Result<job::Job> set_labels(const std::string& name,
                              const std::map<std::string, std::optional<std::string>>& labels);

  // Files for jobs (tree_wire.h), and machines by name.                client_trees.cc

  /// kNotFound where the server does not have it.
  Result<TreeInfo> tree(const std::string& project, const std::string& id);
  /// Those of `chunks` that the server lacks; as many as there are, in several requests.
  Result<std::vector<std::string>> missing_chunks(const std::string& project,
                                                  const std::vector<std::string>& chunks);
  /// `body`: chunks_in() of tree_wire.h, at most kMostChunkBytes.
  Result<void> put_chunks(const std::string& project, std::string body);
  Result<TreeInfo> keep_tree(const std::string& project, const std::string& id,
                             const std::vector<std::string>& manifest_chunks);
  Result<job::MachineTypes> machine_types();

  Result<std::vector<job::ProjectStatus>> projects();
  Result<job::ProjectStatus> project(const std::string& name);
  Result<job::ProjectStatus> create_project(const std::string& name, const ProjectChange& change);
  /// Changes what is set in `change`, and nothing else.
  Result<job::ProjectStatus> patch_project(const std::string& name, const ProjectChange& change);
  /// kConflict while it has jobs that have not ended, or projects below it.
  Result<void> remove_project(const std::string& name);

  Result<std::vector<job::Node>> nodes();
  Result<job::Node> node(const std::string& name);
  /// A cordoned node takes nothing new; a drained one is cordoned, and what runs there is evicted.
  Result<job::Node> cordon(const std::string& name);
  Result<job::Node> uncordon(const std::string& name);
  Result<job::Node> drain(const std::string& name);

  /// Tells the server to leave once it is idle; jobs go on without it.
  Result<void> shut_down();

  // Accounts.                                                          client_accounts.cc

  /// A session for the user of the token that this client shows. An invitation is used up by it.
  Result<NewToken> log_in(const TokenRequest& request);
  /// Revokes the token that this client shows.
  Result<void> log_out();
  Result<WhoAmI> who_am_i();

  Result<std::vector<access::User>> users();
  Result<access::User> user(const std::string& name);
  Result<NewUser> create_user(const access::User& user);
  Result<access::User> patch_user(const std::string& name, const UserChange& change);
  Result<void> remove_user(const std::string& name);
  /// Another invitation: for a new machine, or where the first has expired.
  Result<NewToken> invite_user(const std::string& name);

  /// Those of `user`; nothing: all that the caller may see.
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

  // Notifications (notification_wire.h).                                client_notifications.cc

  Result<std::vector<job::Subscription>> subscriptions(const std::string& project);
  Result<KeyedSubscription> subscribe(const std::string& project,
                                      const SubscriptionRequest& request);
  Result<void> unsubscribe(const std::string& project, const std::string& id);
  Result<KeyedSubscription> rotate_subscription(const std::string& project, const std::string& id);
  Result<PingResult> ping_subscription(const std::string& project, const std::string& id);
  Result<std::vector<job::Delivery>> dead_letters(const std::string& project);
  /// Those with these ids, or all; how many.
  Result<int> retry_dead_letters(const std::string& project, const std::vector<std::string>& ids);

  /// One page, newest first.
  Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query);

 private:
  /// `request` with the token. Every request goes through this, streams as well.
  http::Request authorized(http::Request request) const;
  /// On one job: with the project that was set.
  Result<std::unique_ptr<http::WebSocketClient>> open_socket(const std::string& name,
                                                             std::string_view action,
                                                             Parameters parameters);
  http::Request job_request(std::string method, const std::string& name,
                            std::string_view action = {}) const;
  /// What an answer of 400 and more says.
  base::Error problem(const http::Request& request, const http::Response& response) const;
  Result<http::Response> call(const http::Request& request);
  Result<job::Job> act_on_job(const std::string& name, std::string_view action);
  Result<job::Node> act_on_node(const std::string& name, std::string_view action);

  http::BlockingClient http_;
  std::variant<std::filesystem::path, http::TlsEndpoint> place_;  ///< for connections of their own
  std::string authorization_;  ///< the header; empty over the unix socket
  std::string server_;         ///< https://HOST:PORT; empty over the unix socket
  std::string project_;
};

}  // namespace muster::api
