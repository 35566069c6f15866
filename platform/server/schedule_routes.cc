// Schedules: create, show, pause, resume, run now, delete.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/schedule_wire.h"
#include "api/wire.h"
#include "base/text.h"
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

http::Response schedule_answer(int status, const job::Schedule& schedule) {
  return json_answer(status, api::schedule_to_json(schedule));
}

/// The schedule in the path, if the caller has `needed` in its project. Schedules of projects that
/// the caller does not see are as unknown as schedules that do not exist.
Result<job::Schedule> schedule_of(Controller& controller, const ApiCall& call, Role needed) {
  const std::string& name = call.path.at("name");
  const std::string project = parameter(call.request, "project");
  const Sight sight(controller, call.who);
  std::vector<job::Schedule> meant = controller.schedules().named(name);
  std::erase_if(meant, [&](const job::Schedule& schedule) {
    const std::string& home = schedule.spec.project;
    return !sight.sees_project(home) || (!project.empty() && home != project);
  });
  if (meant.size() == 1) {
    MUSTER_CHECK(sight.project(meant.front().spec.project, needed));
    return std::move(meant.front());
  }
  if (!meant.empty()) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "several projects have a schedule " + base::in_quotes(name),
                 .advice = "choose one: --project NAME, or ?project=NAME"};
  }
  std::vector<std::string> names;
  for (const job::Schedule& schedule : controller.schedules().list(std::nullopt)) {
    if (sight.sees_project(schedule.spec.project)) names.push_back(schedule.spec.name);
  }
  const std::string near = base::nearest(name, names);
  return Error{.code = ErrorCode::kNotFound,
               .what = "there is no schedule " + base::in_quotes(name),
               .advice = near.empty() ? "muster schedule list shows the schedules there are"
                                      : "did you mean " + base::in_quotes(near) + "?"};
}

RouteAnswer list_schedules(Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  const std::string project = parameter(call.request, "project");
  if (!project.empty()) MUSTER_CHECK(sight.project(project, Role::kViewer));
  std::vector<job::Schedule> schedules = controller.schedules().list(
      project.empty() ? std::nullopt : std::optional<std::string>(project));
  std::erase_if(schedules, [&](const job::Schedule& schedule) {
    return !sight.sees_project(schedule.spec.project);
  });
  return json_answer(200, api::schedules_to_json(schedules));
}

RouteAnswer create_schedule(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(job::ScheduleSpec spec,
             api::schedule_spec_from_json(call.request.body, control::faults_of_times));
  const Sight sight(controller, call.who);
  MUSTER_CHECK(sight.project_of_spec(spec.project, Role::kMember));
  MUSTER_CHECK(sight.may_run_in(spec.job.sandbox));
  const auto schedule = controller.schedules().create(std::move(spec), call.actor());
  if (!schedule) {
    return api::with_api_names<job::ScheduleSpec>(sight.redacted(schedule.error()));
  }
  return schedule_answer(201, *schedule);
}

RouteAnswer get_schedule(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const job::Schedule schedule, schedule_of(controller, call, Role::kViewer));
  return schedule_answer(200, schedule);
}

RouteAnswer pause_schedule(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const job::Schedule schedule, schedule_of(controller, call, Role::kMember));
  MUSTER_TRY(const job::Schedule paused, controller.schedules().pause(schedule.id, call.actor()));
  return schedule_answer(200, paused);
}

RouteAnswer resume_schedule(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const job::Schedule schedule, schedule_of(controller, call, Role::kMember));
  MUSTER_TRY(const job::Schedule resumed, controller.schedules().resume(schedule.id, call.actor()));
  return schedule_answer(200, resumed);
}

RouteAnswer run_schedule(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const job::Schedule schedule, schedule_of(controller, call, Role::kMember));
  const Sight sight(controller, call.who);
  const auto run = controller.schedules().run(schedule.id, call.actor());
  if (!run) return sight.redacted(run.error());
  if (auto array = controller.arrays().with_id(run->job_id)) {
    return json_answer(202, api::array_to_json(sight.shown(*std::move(array))));
  }
  MUSTER_TRY(const job::Job* const job, controller.jobs().find(run->job_id));
  return json_answer(201, api::job_to_json(sight.shown(*job)));
}

RouteAnswer remove_schedule(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const job::Schedule schedule, schedule_of(controller, call, Role::kMember));
  MUSTER_CHECK(controller.schedules().remove(schedule.id, call.actor()));
  return nothing_more();
}

}  // namespace

void add_schedule_routes(Router& router, Controller& controller) {
  const auto add = [&](const char* method, const char* path, auto answer) {
    router.add(
        method, path, Permission::kSignedIn,
        at_once([&controller, answer](const ApiCall& call) { return answer(controller, call); }));
  };
  add("GET", "/v1/schedules", list_schedules);
  add("POST", "/v1/schedules", create_schedule);
  add("GET", "/v1/schedules/{name}", get_schedule);
  add("DELETE", "/v1/schedules/{name}", remove_schedule);
  add("POST", "/v1/schedules/{name}/pause", pause_schedule);
  add("POST", "/v1/schedules/{name}/resume", resume_schedule);
  add("POST", "/v1/schedules/{name}/run", run_schedule);
}

}  // namespace muster::server
