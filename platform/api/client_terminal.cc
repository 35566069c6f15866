// Programs in the tasks of jobs.
#include "api/client.h"
#include "api/requests.h"
#include "api/routes.h"

namespace muster::api {

Result<std::unique_ptr<http::WebSocketClient>> Client::exec(const std::string& name,
                                                            const ExecRequest& request) {
  MUSTER_CHECK(check_segment(name, "job", "see the names of your jobs: muster list"));
  http::Request upgrade = authorized(job_request("GET", name, kExecAction));
  upgrade.query.merge(exec_request_to_parameters(request));
  http::Response refusal;
  auto opened = std::visit(
      [&](const auto& place) { return http::WebSocketClient::open(place, upgrade, refusal); },
      place_);
  if (!opened && refusal.status >= 400) return problem(upgrade, refusal);
  return opened;
}

}  // namespace muster::api
