#include "api/client.h"

#include <optional>
#include <utility>

#include "api/forecast_wire.h"
#include "api/log_query.h"
#include "api/node_wire.h"
#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::ProjectStatus;

namespace {

http::Request request_for(std::string method, std::string path) {
  return {.method = std::move(method), .path = std::move(path)};
}

http::Request request_for(std::string method, std::string path, std::string body) {
  http::Request request = request_for(std::move(method), std::move(path));
  request.headers["content-type"] = "application/json";
  request.body = std::move(body);
  return request;
}

/// Whether `name` makes one segment of a path. Any other would ask for something else.
bool is_segment(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos;
}

Result<void> check_name(const std::string& name) {
  if (is_segment(name)) return {};
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + name + "' is not a job name",
               .advice = "see the names of your jobs: muster list"};
}

Result<void> check_project_name(const std::string& name) {
  if (is_segment(name)) return {};
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + name + "' is not a project name",
               .advice = "see the names of the projects: muster project list"};
}

Result<void> check_node_name(const std::string& name) {
  if (is_segment(name)) return {};
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + name + "' is not a node name",
               .advice = "see the names of the nodes: muster node list"};
}

/// What the pieces of a stream of logs come to.
class LogReader {
 public:
  explicit LogReader(const std::function<bool(const job::LogRecord&)>& on_record)
      : on_record_(on_record) {}

  /// Returns whether it wants more.
  bool put(std::string_view piece) {
    return decoder_.put(piece, [this](std::string_view event, std::string_view data) {
      if (event == kLogEvent) return take_record(data);
      if (event == kEndEvent) job_ = job_from_json(data);
      return !job_;
    });
  }

  void leave() { left_ = true; }
  bool left() const { return left_; }
  /// The last event's job, or what was wrong with an event; nothing where neither came.
  std::optional<Result<Job>>& job() { return job_; }

 private:
  bool take_record(std::string_view data) {
    const auto record = log_record_from_json(data);
    if (!record) {
      job_ = Result<Job>(record.error());
      return false;
    }
    left_ = !on_record_(*record);
    return !left_;
  }

  const std::function<bool(const job::LogRecord&)>& on_record_;
  http::EventDecoder decoder_;
  std::optional<Result<Job>> job_;
  bool left_ = false;
};

}  // namespace

Result<http::Response> Client::call(const http::Request& request) {
  MUSTER_TRY(http::Response response, http_.send(request));
  if (response.status >= 400) return problem_from_json(response.status, response.body);
  return response;
}

Result<ServerInfo> Client::info() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kInfoPath))));
  return info_from_json(response.body);
}

Result<Job> Client::submit(const job::JobSpec& spec, const std::string& idempotency_key) {
  http::Request request = request_for("POST", std::string(kJobsPath), spec_to_json(spec));
  request.headers[std::string(kIdempotencyKey)] = idempotency_key;
  MUSTER_TRY(const http::Response response, call(request));
  return job_from_json(response.body);
}

Result<job::Forecast> Client::forecast(const job::JobSpec& spec) {
  http::Request request = request_for("POST", std::string(kJobsPath), spec_to_json(spec));
  request.query[std::string(kDryRun)] = "true";
  MUSTER_TRY(const http::Response response, call(request));
  return forecast_from_json(response.body);
}

Result<std::vector<Job>> Client::list() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kJobsPath))));
  return jobs_from_json(response.body);
}

Result<Job> Client::get(const std::string& name) {
  MUSTER_CHECK(check_name(name));
  MUSTER_TRY(const http::Response response, call(request_for("GET", job_path(name))));
  return job_from_json(response.body);
}

Result<Job> Client::stop(const std::string& name, bool now) {
  MUSTER_CHECK(check_name(name));
  http::Request request = request_for("POST", job_path(name, kStopAction));
  if (now) request.query["now"] = "true";
  MUSTER_TRY(const http::Response response, call(request));
  return job_from_json(response.body);
}

Result<std::vector<Job>> Client::queue() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kQueuePath))));
  return jobs_from_json(response.body);
}

Result<job::Explanation> Client::explain(const std::string& name) {
  MUSTER_CHECK(check_name(name));
  MUSTER_TRY(const http::Response response,
             call(request_for("GET", job_path(name, kExplainAction))));
  return explanation_from_json(response.body);
}

Result<Job> Client::suspend(const std::string& name) {
  return act_on_job(name, kSuspendAction);
}

Result<Job> Client::resume(const std::string& name) {
  return act_on_job(name, kResumeAction);
}

Result<Job> Client::act_on_job(const std::string& name, std::string_view action) {
  MUSTER_CHECK(check_name(name));
  MUSTER_TRY(const http::Response response, call(request_for("POST", job_path(name, action))));
  return job_from_json(response.body);
}

Result<void> Client::remove(const std::string& name) {
  MUSTER_CHECK(check_name(name));
  MUSTER_CHECK(call(request_for("DELETE", job_path(name))));
  return {};
}

Result<Job> Client::logs(const std::string& name, const job::LogQuery& query,
                         const std::function<bool(const job::LogRecord&)>& on_record,
                         const http::Wake& wake) {
  MUSTER_CHECK(check_name(name));
  http::Request request = request_for("GET", job_path(name, kLogsAction));
  request.query = log_query_to_parameters(query);

  LogReader reader(on_record);
  const http::Wake noting_wake{.fd = wake.fd, .on_wake = [&] {
                                 if (wake.on_wake()) return true;
                                 reader.leave();
                                 return false;
                               }};
  MUSTER_TRY(const http::Response response,
             http_.stream(
                 request, [&](std::string_view piece) { return reader.put(piece); }, noting_wake));
  if (response.status >= 400) return problem_from_json(response.status, response.body);
  if (reader.job()) return *std::move(reader.job());
  if (reader.left()) return get(name);
  return Error{.code = ErrorCode::kUnavailable,
               .what = "the server ended the logs of '" + name + "' in the midst",
               .advice = "ask for them again"};
}

Result<std::vector<ProjectStatus>> Client::projects() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kProjectsPath))));
  return projects_from_json(response.body);
}

Result<ProjectStatus> Client::project(const std::string& name) {
  MUSTER_CHECK(check_project_name(name));
  MUSTER_TRY(const http::Response response, call(request_for("GET", project_path(name))));
  return project_from_json(response.body);
}

Result<ProjectStatus> Client::create_project(const std::string& name, const ProjectChange& change) {
  MUSTER_TRY(
      const http::Response response,
      call(request_for("POST", std::string(kProjectsPath), project_change_to_json(name, change))));
  return project_from_json(response.body);
}

Result<ProjectStatus> Client::patch_project(const std::string& name, const ProjectChange& change) {
  MUSTER_CHECK(check_project_name(name));
  MUSTER_TRY(const http::Response response,
             call(request_for("PATCH", project_path(name), project_change_to_json({}, change))));
  return project_from_json(response.body);
}

Result<void> Client::remove_project(const std::string& name) {
  MUSTER_CHECK(check_project_name(name));
  MUSTER_CHECK(call(request_for("DELETE", project_path(name))));
  return {};
}

Result<std::vector<job::Node>> Client::nodes() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kNodesPath))));
  return nodes_from_json(response.body);
}

Result<job::Node> Client::node(const std::string& name) {
  MUSTER_CHECK(check_node_name(name));
  MUSTER_TRY(const http::Response response, call(request_for("GET", node_path(name))));
  return node_from_json(response.body);
}

Result<job::Node> Client::cordon(const std::string& name) {
  return act_on_node(name, kCordonAction);
}

Result<job::Node> Client::uncordon(const std::string& name) {
  return act_on_node(name, kUncordonAction);
}

Result<job::Node> Client::drain(const std::string& name) {
  return act_on_node(name, kDrainAction);
}

Result<job::Node> Client::act_on_node(const std::string& name, std::string_view action) {
  MUSTER_CHECK(check_node_name(name));
  MUSTER_TRY(const http::Response response, call(request_for("POST", node_path(name, action))));
  return node_from_json(response.body);
}

Result<void> Client::shut_down() {
  MUSTER_CHECK(call(request_for("POST", std::string(kShutdownPath))));
  return {};
}

}  // namespace muster::api
