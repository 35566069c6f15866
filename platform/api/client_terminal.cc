// Programs in the tasks of jobs.
#include "api/client.h"
#include "api/requests.h"
#include "api/routes.h"

namespace muster::api {

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

}  // namespace muster::api
