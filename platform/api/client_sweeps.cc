// The client's requests on sweeps.

#include "api/client.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/sweep_wire.h"

namespace muster::api {

namespace {

Result<void> check_sweep(const std::string& name) {
  return check_segment(name, "sweep", "list the sweeps: muster sweep list");
}

}  // namespace

http::Request Client::sweep_request(std::string method, const std::string& name,
                                    std::string_view action) const {
  http::Request request = request_for(std::move(method), path_of(kSweepsPath, name, action));
  if (!project_.empty()) request.query["project"] = project_;
  return request;
}

Result<sweep::Sweep> Client::create_sweep(const sweep::SweepSpec& spec) {
  MUSTER_TRY(const http::Response response,
             with_file_names<sweep::SweepSpec>(
                 call(request_for("POST", std::string(kSweepsPath), sweep_spec_to_json(spec)))));
  return sweep_from_json(response.body);
}

Result<sweep::SweepPlan> Client::plan_sweep(const sweep::SweepSpec& spec) {
  http::Request request = request_for("POST", std::string(kSweepsPath), sweep_spec_to_json(spec));
  request.query[std::string(kDryRun)] = "true";
  MUSTER_TRY(const http::Response response, with_file_names<sweep::SweepSpec>(call(request)));
  return sweep_plan_from_json(response.body);
}

Result<std::vector<sweep::SweepSummary>> Client::sweeps() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kSweepsPath))));
  return sweeps_from_json(response.body);
}

Result<sweep::Sweep> Client::sweep(const std::string& name) {
  MUSTER_CHECK(check_sweep(name));
  MUSTER_TRY(const http::Response response, call(sweep_request("GET", name, {})));
  return sweep_from_json(response.body);
}

Result<sweep::Sweep> Client::change_sweep(const std::string& name, std::string_view action) {
  MUSTER_CHECK(check_sweep(name));
  MUSTER_TRY(const http::Response response, call(sweep_request("POST", name, action)));
  return sweep_from_json(response.body);
}

Result<void> Client::remove_sweep(const std::string& name) {
  MUSTER_CHECK(check_sweep(name));
  MUSTER_CHECK(call(sweep_request("DELETE", name, {})));
  return {};
}

}  // namespace muster::api
