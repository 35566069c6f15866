// Projects and their quotas. What a project may claim is taken from what others may: only an admin
// of the server decides it, not one of the project.
#include <string>
#include <vector>

#include "api/project_wire.h"
#include "server/answers.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using control::Controller;

Answer list_projects(const Controller& controller, const Call& call) {
  const Sight sight(controller, call.who);
  std::vector<job::ProjectStatus> visible;
  for (job::ProjectStatus& status : controller.projects().list()) {
    if (sight.sees_project(status.project.name)) {
      visible.push_back(sight.redacted(std::move(status)));
    }
  }
  return json_answer(200, api::projects_to_json(visible));
}

Answer get_project(const Controller& controller, const Call& call) {
  const Sight sight(controller, call.who);
  const std::string& name = call.path.at("name");
  MUSTER_CHECK(sight.project(name, access::Role::kViewer));
  MUSTER_TRY(job::ProjectStatus status, controller.projects().status(name));
  return json_answer(200, api::project_to_json(sight.redacted(std::move(status))));
}

Answer create_project(Controller& controller, const Call& call) {
  MUSTER_TRY(job::Project project, api::read_project(call.request.body, {}));
  MUSTER_TRY(const job::ProjectStatus created,
             controller.projects().create(std::move(project), call.actor()));
  return json_answer(201, api::project_to_json(created));
}

/// Changes what the body says and leaves the rest as it is now.
Answer change_project(Controller& controller, const Call& call) {
  MUSTER_TRY(const job::ProjectStatus now, controller.projects().status(call.path.at("name")));
  MUSTER_TRY(job::Project changed, api::read_project(call.request.body, now.project));
  MUSTER_TRY(const job::ProjectStatus status,
             controller.projects().set(std::move(changed), call.actor()));
  return json_answer(200, api::project_to_json(status));
}

Answer remove_project(Controller& controller, const Call& call) {
  MUSTER_CHECK(controller.projects().remove(call.path.at("name"), call.actor()));
  return nothing_more();
}

}  // namespace

void add_project_routes(Router& router, Controller& controller) {
  router.add("GET", "/v1/projects", Permission::kSignedIn,
             at_once([&controller](const Call& call) { return list_projects(controller, call); }));
  router.add("GET", "/v1/projects/{name}", Permission::kSignedIn,
             at_once([&controller](const Call& call) { return get_project(controller, call); }));
  router.add("POST", "/v1/projects", Permission::kServerAdmin,
             at_once([&controller](const Call& call) { return create_project(controller, call); }));
  router.add("PATCH", "/v1/projects/{name}", Permission::kServerAdmin,
             at_once([&controller](const Call& call) { return change_project(controller, call); }));
  router.add("DELETE", "/v1/projects/{name}", Permission::kServerAdmin,
             at_once([&controller](const Call& call) { return remove_project(controller, call); }));
}

}  // namespace muster::server
