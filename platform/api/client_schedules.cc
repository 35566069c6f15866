// The client's requests about schedules.
#include "api/array_wire.h"
#include "api/client.h"
#include "api/requests.h"
#include "api/routes.h"

namespace muster::api {

Result<http::Response> Client::call_schedule(std::string method, const std::string& name,
                                             std::string_view action) {
  MUSTER_CHECK(check_segment(name, "schedule", "list the schedules: muster schedule list"));
  std::string path = path_of(kSchedulesPath, name, action);
  http::Request request = request_for(std::move(method), std::move(path));
  if (!project_.empty()) request.query["project"] = project_;
  return call(request);
}

Result<job::Schedule> Client::create_schedule(const job::ScheduleSpec& spec) {
  MUSTER_TRY(const http::Response response,
             with_file_names<job::ScheduleSpec>(call(
                 request_for("POST", std::string(kSchedulesPath), schedule_spec_to_json(spec)))));
  return schedule_from_json(response.body);
}

Result<std::vector<job::Schedule>> Client::schedules(const std::string& project) {
  http::Request request = request_for("GET", std::string(kSchedulesPath));
  if (!project.empty()) request.query["project"] = project;
  MUSTER_TRY(const http::Response response, call(request));
  return schedules_from_json(response.body);
}

Result<job::Schedule> Client::schedule(const std::string& name) {
  MUSTER_TRY(const http::Response response, call_schedule("GET", name, {}));
  return schedule_from_json(response.body);
}

Result<job::Schedule> Client::pause_schedule(const std::string& name) {
  MUSTER_TRY(const http::Response response, call_schedule("POST", name, kPauseAction));
  return schedule_from_json(response.body);
}

Result<job::Schedule> Client::resume_schedule(const std::string& name) {
  MUSTER_TRY(const http::Response response, call_schedule("POST", name, kResumeAction));
  return schedule_from_json(response.body);
}

Result<Client::ScheduleRunStarted> Client::run_schedule(const std::string& name) {
  constexpr int kAccepted = 202;
  MUSTER_TRY(const http::Response response, call_schedule("POST", name, kRunAction));
  if (response.status == kAccepted) {
    MUSTER_TRY(job::Array array, array_from_json(response.body));
    return ScheduleRunStarted(std::move(array));
  }
  MUSTER_TRY(job::Job job, job_from_json(response.body));
  return ScheduleRunStarted(std::move(job));
}

Result<void> Client::remove_schedule(const std::string& name) {
  MUSTER_CHECK(call_schedule("DELETE", name, {}));
  return {};
}

}  // namespace muster::api
