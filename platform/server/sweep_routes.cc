// The routes of sweeps: create, list, show, stop, pause, resume and delete.

#include <functional>
#include <string>
#include <vector>

#include "api/routes.h"
#include "api/sweep_wire.h"
#include "api/wire.h"
#include "base/text.h"
#include "control/sweeps.h"
#include "control/unknown_name.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using access::Role;
using base::Error;
using base::ErrorCode;
using base::Result;
using control::Controller;
using sweep::SweepSummary;

std::vector<SweepSummary> visible_sweeps(const Controller& controller, const Sight& sight,
                                         const std::string& project) {
  std::vector<SweepSummary> sweeps = controller.sweeps().list();
  std::erase_if(sweeps, [&](const SweepSummary& each) {
    return !sight.sees(each) || (!project.empty() && each.project != project);
  });
  return sweeps;
}

/// The id of the sweep in the path, if the caller has `needed` in its project.
Result<std::string> sweep_in_path(const Controller& controller, const ApiCall& call, Role needed) {
  const Sight sight(controller, call.who);
  const std::string& name = call.path.at("name");
  const std::vector<SweepSummary> visible =
      visible_sweeps(controller, sight, parameter(call.request, "project"));
  std::vector<const SweepSummary*> meant;
  std::vector<std::string> names;
  std::vector<std::string> projects;
  for (const SweepSummary& each : visible) {
    names.push_back(each.name);
    if (each.id != name && each.name != name) continue;
    meant.push_back(&each);
    projects.push_back(each.project);
  }
  if (meant.empty()) {
    return control::unknown_name("sweep", name, names, "list the sweeps: muster sweep list");
  }
  if (meant.size() > 1) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "several projects have a sweep '" + name + "': " + base::joined(projects),
                 .advice = "choose one: --project NAME, or ?project=NAME"};
  }
  MUSTER_CHECK(sight.project(meant.front()->project, needed));
  return meant.front()->id;
}

RouteAnswer list_sweeps(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  const std::string project = parameter(call.request, "project");
  if (!project.empty()) MUSTER_CHECK(sight.project(project, Role::kViewer));
  return json_answer(200, api::sweeps_to_json(visible_sweeps(controller, sight, project)));
}

RouteAnswer create_sweep(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const sweep::SweepSpec spec, api::sweep_spec_from_json(call.request.body));
  const Sight sight(controller, call.who);
  MUSTER_CHECK(sight.project_of_spec(spec.job.project, Role::kMember));
  MUSTER_CHECK(sight.may_run_in(spec.job.sandbox));
  MUSTER_TRY(const bool dry_run, flag_parameter(call.request, api::kDryRun));
  if (dry_run) {
    const auto plan = controller.sweeps().plan(spec);
    if (!plan) return api::with_api_names<sweep::SweepSpec>(sight.redacted(plan.error()));
    return json_answer(200, api::sweep_plan_to_json(*plan));
  }
  const auto made = controller.sweeps().create(spec, call.actor());
  if (!made) return api::with_api_names<sweep::SweepSpec>(sight.redacted(made.error()));
  return json_answer(201, api::sweep_to_json(*made));
}

RouteAnswer get_sweep(const Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const std::string id, sweep_in_path(controller, call, Role::kViewer));
  return json_answer(200, api::sweep_to_json(*controller.sweeps().with_id(id)));
}

RouteAnswer remove_sweep(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const std::string id, sweep_in_path(controller, call, Role::kMember));
  MUSTER_CHECK(controller.sweeps().remove(id, call.actor()));
  return nothing_more();
}

using SweepChange = std::function<Result<sweep::Sweep>(const std::string& id, const ApiCall& call)>;

RouteHandler changing_sweep(Controller& controller, SweepChange change) {
  return at_once([&controller, change = std::move(change)](const ApiCall& call) -> RouteAnswer {
    MUSTER_TRY(const std::string id, sweep_in_path(controller, call, Role::kMember));
    MUSTER_TRY(const sweep::Sweep changed, change(id, call));
    return json_answer(200, api::sweep_to_json(changed));
  });
}

}  // namespace

void add_sweep_routes(Router& router, Controller& controller) {
  const auto add = [&](const char* method, const char* path, RouteHandler handler) {
    router.add(method, path, Permission::kSignedIn, std::move(handler));
  };
  add("GET", "/v1/sweeps",
      at_once([&controller](const ApiCall& call) { return list_sweeps(controller, call); }));
  add("POST", "/v1/sweeps",
      at_once([&controller](const ApiCall& call) { return create_sweep(controller, call); }));
  add("GET", "/v1/sweeps/{name}",
      at_once([&controller](const ApiCall& call) { return get_sweep(controller, call); }));
  add("DELETE", "/v1/sweeps/{name}",
      at_once([&controller](const ApiCall& call) { return remove_sweep(controller, call); }));
  add("POST", "/v1/sweeps/{name}/stop",
      changing_sweep(controller, [&controller](const std::string& id, const ApiCall& call) {
        return controller.sweeps().stop(id, call.actor());
      }));
  add("POST", "/v1/sweeps/{name}/pause",
      changing_sweep(controller, [&controller](const std::string& id, const ApiCall& call) {
        return controller.sweeps().set_paused(id, true, call.actor());
      }));
  add("POST", "/v1/sweeps/{name}/resume",
      changing_sweep(controller, [&controller](const std::string& id, const ApiCall& call) {
        return controller.sweeps().set_paused(id, false, call.actor());
      }));
}

}  // namespace muster::server
