// The typed face of the HTTP API: what the command line has instead of requests.
//
// Blocking; not thread-safe. An error that the server answered comes back as it was there: same
// code, sentences and faults. kUnavailable: no server on the socket.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "api/project_wire.h"
#include "api/wire.h"
#include "base/result.h"
#include "http/client.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/log_record.h"
#include "job/node.h"
#include "job/project.h"

namespace muster::api {

class Client {
 public:
  explicit Client(std::filesystem::path socket) : http_(std::move(socket)) {}

  Result<ServerInfo> info();

  /// `idempotency_key`: fresh for each intent. Sent again with the same key, the first answer comes
  /// back and no second job is made.
  Result<job::Job> submit(const job::JobSpec& spec, const std::string& idempotency_key);

  /// What submit() would do with this spec now. Nothing is stored.
  Result<job::Forecast> forecast(const job::JobSpec& spec);

  Result<std::vector<job::Job>> list();
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

  /// Hands over the job's log records in order until there are no more (with query.follow: until
  /// the job has ended), and returns the job as it then is. `on_record` returns false to leave
  /// early; `wake` as in http::Client.
  Result<job::Job> logs(const std::string& name, const job::LogQuery& query,
                        const std::function<bool(const job::LogRecord&)>& on_record,
                        const http::Wake& wake = {});

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

 private:
  Result<http::Response> call(const http::Request& request);
  Result<job::Job> act_on_job(const std::string& name, std::string_view action);
  Result<job::Node> act_on_node(const std::string& name, std::string_view action);
  http::Client http_;
};

}  // namespace muster::api
