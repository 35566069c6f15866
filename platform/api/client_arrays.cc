// The arrays of api::Client.
#include <utility>

#include "api/array_wire.h"
#include "api/client.h"
#include "api/requests.h"
#include "api/routes.h"

namespace muster::api {

http::Request Client::array_request(std::string method, const std::string& name,
                                    std::string_view action, std::string body) const {
  const std::string path = path_of(kArraysPath, name, action);
  http::Request request = body.empty() ? request_for(std::move(method), path)
                                       : request_for(std::move(method), path, std::move(body));
  if (!project_.empty()) request.query["project"] = project_;
  return request;
}

Result<job::Array> Client::array_call(const http::Request& request) {
  MUSTER_TRY(const http::Response response, call(request));
  return array_from_json(response.body);
}

Result<job::Array> Client::submit_array(const job::JobSpec& spec,
                                        const std::string& idempotency_key,
                                        const SubmitOptions& options) {
  http::Request request = submission(spec, options);
  request.headers[std::string(kIdempotencyKey)] = idempotency_key;
  MUSTER_TRY(const http::Response response, with_file_names<job::JobSpec>(call(request)));
  return array_from_json(response.body);
}

Result<std::vector<job::Array>> Client::arrays(const std::optional<std::string>& project) {
  http::Request request = request_for("GET", std::string(kArraysPath));
  if (project) request.query["project"] = *project;
  MUSTER_TRY(const http::Response response, call(request));
  return arrays_from_json(response.body);
}

Result<job::Array> Client::array(const std::string& name) {
  MUSTER_CHECK(check_job_name(name));
  return array_call(array_request("GET", name));
}

Result<job::Array> Client::array_with_lines(const std::string& name) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = array_request("GET", name);
  request.query[kWithLines] = "true";
  return array_call(request);
}

Result<job::Array> Client::stop_array(const std::string& name, bool now) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = array_request("POST", name, kStopAction);
  if (now) request.query["now"] = "true";
  return array_call(request);
}

Result<job::Array> Client::suspend_array(const std::string& name) {
  MUSTER_CHECK(check_job_name(name));
  return array_call(array_request("POST", name, kSuspendAction));
}

Result<job::Array> Client::resume_array(const std::string& name) {
  MUSTER_CHECK(check_job_name(name));
  return array_call(array_request("POST", name, kResumeAction));
}

Result<job::Array> Client::rerun_failed(const std::string& name, const RerunRequest& changes) {
  MUSTER_CHECK(check_job_name(name));
  return array_call(array_request("POST", name, kRerunAction, rerun_request_to_json(changes)));
}

Result<void> Client::remove_array(const std::string& name) {
  MUSTER_CHECK(check_job_name(name));
  MUSTER_CHECK(call(array_request("DELETE", name)));
  return {};
}

}  // namespace muster::api
