#include "api/requests.h"

#include <utility>

namespace muster::api {

http::Request request_for(std::string method, std::string path) {
  return {.method = std::move(method), .path = std::move(path)};
}

http::Request request_for(std::string method, std::string path, std::string body) {
  http::Request request = request_for(std::move(method), std::move(path));
  request.headers["content-type"] = "application/json";
  request.body = std::move(body);
  return request;
}

base::Result<void> check_segment(const std::string& name, const std::string& kind,
                                 const std::string& advice) {
  const bool is_segment = !name.empty() && name.find('/') == std::string::npos;
  if (is_segment && name != "." && name != "..") return {};
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "'" + name + "' is not a " + kind + " name",
                     .advice = advice};
}

base::Result<void> check_job_name(const std::string& name) {
  return check_segment(name, "job", "list your jobs: muster list");
}

base::Result<void> check_project_name(const std::string& name) {
  return check_segment(name, "project", "list the projects: muster project list");
}

}  // namespace muster::api
