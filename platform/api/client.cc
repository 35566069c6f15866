#include "api/client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "access/identity.h"
#include "api/cluster_wire.h"
#include "api/file_wire.h"
#include "api/job_query.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/server_url.h"
#include "api/wire.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::ProjectStatus;

namespace {

Result<void> check_node_name(const std::string& name) {
  return check_segment(name, "node", "list the nodes: muster node list");
}

}  // namespace

Client::Client(const http::TlsEndpoint& endpoint, const std::string& token)
    : http_(endpoint),
      place_(endpoint),
      authorization_(token.empty() ? "" : "Bearer " + token),
      server_(server_url(endpoint.host, endpoint.port)) {}

http::Request Client::authorized(http::Request request) const {
  if (!authorization_.empty()) request.headers["authorization"] = authorization_;
  return request;
}

http::Request Client::job_request(std::string method, const std::string& name,
                                  std::string_view action) const {
  http::Request request = request_for(std::move(method), job_path(name, action));
  if (!project_.empty()) request.query["project"] = project_;
  return request;
}

base::Error Client::problem(const http::Request& request, const http::Response& response) const {
  constexpr int kUnauthorized = 401;
  Error error = problem_from_json(response.status, response.body);
  if (response.status != kUnauthorized || server_.empty()) return error;
  error.code = ErrorCode::kRefused;
  // If a login helps, the advice contains the address, which only the client has.
  const bool mends = error.advice.empty() || base::detail_of<access::NotLoggedIn>(error) != nullptr;
  if (!mends) return error;
  if (request.path == kLoginPath) {
    error.advice = "ask an admin of the server for an invitation: muster user invite NAME";
    error.detail.reset();
  } else {
    error.advice = "log in again: muster login " + server_;
    error.detail = std::make_shared<const access::NotLoggedIn>();
  }
  return error;
}

Result<http::Response> Client::call(const http::Request& request) {
  MUSTER_TRY(http::Response response, http_.send(authorized(request)));
  if (response.status >= 400) return problem(request, response);
  return response;
}

Result<ServerInfo> Client::info() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kInfoPath))));
  return info_from_json(response.body);
}

http::Request submission(const job::JobSpec& spec, const Client::SubmitOptions& options) {
  http::Request request = request_for("POST", std::string(kJobsPath), spec_to_json(spec));
  const auto set = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) request.query[std::string(name)] = value;
  };
  set(kNameTemplate, options.name_template);
  set(kNameSuffix, options.name_suffix ? "true" : "");
  set(kRerunOf, options.rerun_of);
  return request;
}

Result<Job> Client::submit(const job::JobSpec& spec, const std::string& idempotency_key,
                           const SubmitOptions& options) {
  http::Request request = submission(spec, options);
  request.headers[std::string(kIdempotencyKey)] = idempotency_key;
  MUSTER_TRY(const http::Response response, with_file_names<job::JobSpec>(call(request)));
  return job_from_json(response.body);
}

Result<job::Forecast> Client::forecast(const job::JobSpec& spec, const SubmitOptions& options) {
  http::Request request = submission(spec, options);
  request.query[std::string(kDryRun)] = "true";
  MUSTER_TRY(const http::Response response, with_file_names<job::JobSpec>(call(request)));
  return forecast_from_json(response.body);
}

Result<std::optional<job::Forecast>> Client::forecast_unless_submitted(
    const job::JobSpec& spec, const std::string& idempotency_key, const SubmitOptions& options) {
  constexpr int kForecast = 200;  // 201 and 202: the job or the array of the earlier request
  http::Request request = submission(spec, options);
  request.query[std::string(kDryRun)] = "true";
  request.headers[std::string(kIdempotencyKey)] = idempotency_key;
  MUSTER_TRY(const http::Response response, with_file_names<job::JobSpec>(call(request)));
  if (response.status != kForecast) return std::optional<job::Forecast>();
  MUSTER_TRY(job::Forecast forecast, forecast_from_json(response.body));
  return std::optional(std::move(forecast));
}

Result<Job> Client::get(const std::string& name) {
  MUSTER_CHECK(check_job_name(name));
  MUSTER_TRY(const http::Response response, call(job_request("GET", name)));
  return job_from_json(response.body);
}

Result<Job> Client::stop(const std::string& name, bool now) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = job_request("POST", name, kStopAction);
  if (now) request.query["now"] = "true";
  MUSTER_TRY(const http::Response response, call(request));
  return job_from_json(response.body);
}

Result<std::vector<Job>> Client::queue() {
  std::vector<Job> jobs;
  std::set<std::string> ids;
  QueueQuery query;
  do {
    http::Request request = request_for("GET", std::string(kQueuePath));
    request.query = queue_query_parameters(query);
    MUSTER_TRY(const http::Response response, call(request));
    MUSTER_TRY(JobPage page, job_page_from_json(response.body));
    // The queue may change between two pages, so a job may be on both.
    const size_t before = jobs.size();
    for (Job& job : page.jobs) {
      if (ids.insert(job.id).second) jobs.push_back(std::move(job));
    }
    if (jobs.size() == before) break;
    query.cursor = std::move(page.next);
  } while (!query.cursor.empty());
  return jobs;
}

Result<job::Explanation> Client::explain(const std::string& name) {
  MUSTER_CHECK(check_job_name(name));
  MUSTER_TRY(const http::Response response, call(job_request("GET", name, kExplainAction)));
  return explanation_from_json(response.body);
}

Result<Job> Client::suspend(const std::string& name) {
  return act_on_job(name, kSuspendAction);
}

Result<Job> Client::resume(const std::string& name) {
  return act_on_job(name, kResumeAction);
}

Result<Job> Client::act_on_job(const std::string& name, std::string_view action) {
  MUSTER_CHECK(check_job_name(name));
  MUSTER_TRY(const http::Response response, call(job_request("POST", name, action)));
  return job_from_json(response.body);
}

Result<void> Client::remove(const std::string& name) {
  MUSTER_CHECK(check_job_name(name));
  MUSTER_CHECK(call(job_request("DELETE", name)));
  return {};
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

namespace {

constexpr std::string_view kUsage = "usage";

}  // namespace

Result<ProjectUsage> Client::usage(const std::string& project, const UsageQuery& query) {
  MUSTER_CHECK(check_project_name(project));
  http::Request request = request_for("GET", below_project(project, kUsage));
  request.query = usage_query_parameters({.since = query.since, .until = query.until});
  MUSTER_TRY(const http::Response response, call(request));
  return usage_from_json(response.body);
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

// The client's request for the metrics of a job.

Result<std::vector<job::MetricSeries>> Client::metrics(const std::string& name,
                                                       const job::MetricQuery& query) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = job_request("GET", name, kMetricsAction);
  request.query.merge(metric_query_to_parameters(query));
  MUSTER_TRY(const http::Response response, call(request));
  return metrics_from_json(response.body);
}

// The client's requests on the artifacts of jobs.

Result<ArtifactPage> Client::artifacts(const std::string& name, const ArtifactQuery& query) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = job_request("GET", name, kArtifactsAction);
  request.query.merge(artifact_query_to_parameters(query));
  MUSTER_TRY(const http::Response response, call(request));
  return artifacts_from_json(response.body);
}

Result<void> Client::artifact(const std::string& name, const ArtifactRequest& file,
                              const std::function<bool(std::string_view)>& on_bytes,
                              const http::Wake& wake) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = authorized(job_request("GET", name, kArtifactAction));
  request.query[std::string(kArtifactPath)] = file.path;
  if (file.from > 0) request.headers["range"] = "bytes=" + std::to_string(file.from) + "-";
  if (!file.sha256.empty()) request.headers["if-match"] = etag_of(file.sha256);
  MUSTER_TRY(const http::Response response, http_.stream(request, on_bytes, wake));
  if (response.status >= 400) return problem(request, response);
  return {};
}

// Programs in the tasks of jobs.

using Opened = Result<std::unique_ptr<http::WebSocketClient>>;

Opened Client::open_socket(const std::string& name, std::string_view action,
                           Parameters parameters) {
  MUSTER_CHECK(check_job_name(name));
  http::Request upgrade = authorized(job_request("GET", name, action));
  upgrade.query.merge(parameters);
  http::Response refusal;
  auto opened = std::visit(
      [&](const auto& place) { return http::WebSocketClient::open(place, upgrade, refusal); },
      place_);
  if (!opened && refusal.status >= 400) return problem(upgrade, refusal);
  return opened;
}

Opened Client::exec(const std::string& name, const ExecRequest& request) {
  return open_socket(name, kExecAction, exec_request_to_parameters(request));
}

Opened Client::attach(const std::string& name, const AttachRequest& request) {
  return open_socket(name, kAttachAction, attach_request_to_parameters(request));
}

Opened Client::copy(const std::string& name, const CopyRequest& request) {
  return open_socket(name, kCopyAction, copy_request_to_parameters(request));
}

Opened Client::forward(const std::string& name, const ForwardRequest& request) {
  return open_socket(name, kForwardAction, forward_request_to_parameters(request));
}

// The client's requests on files for jobs, on machines by name, and on a job's labels.

namespace {

constexpr std::string_view kTrees = "trees";
constexpr std::string_view kChunks = "chunks";
constexpr std::string_view kMissing = "missing";

Result<void> check_tree(const std::string& project, const std::string& id) {
  MUSTER_CHECK(check_project_name(project));
  return check_segment(id, "tree", "a tree's id is the hash of its content");
}

}  // namespace

Result<TreeInfo> Client::tree(const std::string& project, const std::string& id) {
  MUSTER_CHECK(check_tree(project, id));
  MUSTER_TRY(const http::Response response,
             call(request_for("GET", below_project(project, kTrees, id))));
  return tree_from_json(response.body);
}

Result<std::vector<std::string>> Client::missing_chunks(const std::string& project,
                                                        const std::vector<std::string>& chunks) {
  MUSTER_CHECK(check_project_name(project));
  constexpr size_t kMostIds = 40'000;  // 67 bytes each, well below the limit of a body
  std::vector<std::string> missing;
  for (size_t begin = 0; begin < chunks.size(); begin += kMostIds) {
    const auto from = chunks.begin() + static_cast<ptrdiff_t>(begin);
    const auto count = static_cast<ptrdiff_t>(std::min(kMostIds, chunks.size() - begin));
    MUSTER_TRY(const http::Response response,
               call(request_for("POST", below_project(project, kChunks, kMissing),
                                chunk_ids_to_json({from, from + count}))));
    MUSTER_TRY(const auto some, chunk_ids_from_json(response.body));
    missing.insert(missing.end(), some.begin(), some.end());
  }
  return missing;
}

Result<void> Client::put_chunks(const std::string& project, std::string body) {
  MUSTER_CHECK(check_project_name(project));
  http::Request request = request_for("PUT", below_project(project, kChunks), std::move(body));
  request.headers["content-type"] = kChunksType;
  MUSTER_CHECK(call(request));
  return {};
}

Result<TreeInfo> Client::keep_tree(const std::string& project, const std::string& id,
                                   const std::vector<std::string>& manifest_chunks) {
  MUSTER_CHECK(check_tree(project, id));
  MUSTER_TRY(const http::Response response,
             call(request_for("PUT", below_project(project, kTrees, id),
                              chunk_ids_to_json(manifest_chunks))));
  return tree_from_json(response.body);
}

Result<job::MachineTypes> Client::machine_types() {
  MUSTER_TRY(const http::Response response,
             call(request_for("GET", std::string(kMachineTypesPath))));
  return machine_types_from_json(response.body);
}

Result<job::Job> Client::set_labels(
    const std::string& name, const std::map<std::string, std::optional<std::string>>& labels) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = job_request("PATCH", name);
  request.headers["content-type"] = "application/json";
  request.body = label_changes_to_json(labels);
  MUSTER_TRY(const http::Response response, call(request));
  return job_from_json(response.body);
}

}  // namespace muster::api
