// /v1/arrays and below.

#include "api/array_wire.h"
#include "api/routes.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using access::Role;
using base::Result;
using control::Controller;

Result<job::Array> array_of_call(const Sight& sight, const ApiCall& call, Role needed) {
  return sight.array(call.path.at("name"), parameter(call.request, "project"), needed);
}

RouteAnswer array_answer(int status, const Sight& sight, job::Array array) {
  return json_answer(status, api::array_to_json(sight.shown(std::move(array))));
}

RouteAnswer list_arrays(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  std::optional<std::string> project;
  if (call.request.query.contains("project")) project = parameter(call.request, "project");
  if (project) MUSTER_CHECK(sight.project(*project, Role::kViewer));
  std::vector<job::Array> arrays;
  for (job::Array& array : controller.arrays().list(project)) {
    if (sight.sees(array)) arrays.push_back(sight.shown(std::move(array)));
  }
  return json_answer(200, api::arrays_to_json(arrays));
}

RouteAnswer get_array(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(job::Array array, array_of_call(sight, call, Role::kViewer));
  return array_answer(200, sight, std::move(array));
}

RouteAnswer remove_array(Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const job::Array array, array_of_call(sight, call, Role::kMember));
  MUSTER_CHECK(controller.arrays().remove(array.id, call.actor()));
  return nothing_more();
}

using ArrayChange = Result<job::Array> (*)(control::Arrays& arrays, const std::string& id,
                                           const ApiCall& call);

RouteHandler changing_array(Controller& controller, ArrayChange change) {
  return at_once([&controller, change](const ApiCall& call) -> RouteAnswer {
    const Sight sight(controller, call.who);
    MUSTER_TRY(const job::Array array, array_of_call(sight, call, Role::kMember));
    MUSTER_TRY(job::Array changed, change(controller.arrays(), array.id, call));
    return array_answer(200, sight, std::move(changed));
  });
}

Result<job::Array> stop_array(control::Arrays& arrays, const std::string& id, const ApiCall& call) {
  MUSTER_TRY(const bool now, says_true(call.request, "now"));
  return arrays.stop(id, now, call.actor());
}

Result<job::Array> rerun_members(control::Arrays& arrays, const std::string& id,
                                 const ApiCall& call) {
  MUSTER_TRY(const api::RerunRequest request, api::rerun_request_from_json(call.request.body));
  return arrays.rerun_failed(
      id, {.max_running = request.max_running, .max_failures = request.max_failures}, call.actor());
}

}  // namespace

void add_array_routes(Router& router, Controller& controller) {
  const auto add = [&](const char* method, const char* path, RouteHandler handler) {
    router.add(method, path, Permission::kSignedIn, std::move(handler));
  };
  add("GET", "/v1/arrays",
      at_once([&controller](const ApiCall& call) { return list_arrays(controller, call); }));
  add("GET", "/v1/arrays/{name}",
      at_once([&controller](const ApiCall& call) { return get_array(controller, call); }));
  add("DELETE", "/v1/arrays/{name}",
      at_once([&controller](const ApiCall& call) { return remove_array(controller, call); }));
  add("POST", "/v1/arrays/{name}/stop", changing_array(controller, stop_array));
  add("POST", "/v1/arrays/{name}/suspend",
      changing_array(controller,
                     [](control::Arrays& arrays, const std::string& id, const ApiCall& call) {
                       return arrays.suspend(id, call.actor());
                     }));
  add("POST", "/v1/arrays/{name}/resume",
      changing_array(controller,
                     [](control::Arrays& arrays, const std::string& id, const ApiCall& call) {
                       return arrays.resume(id, call.actor());
                     }));
  add("POST", "/v1/arrays/{name}/rerun", changing_array(controller, rerun_members));
}

}  // namespace muster::server
