#include <memory>
#include <string>
#include <vector>

#include "api/forecast_wire.h"
#include "api/log_query.h"
#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"
#include "server/answers.h"
#include "server/log_stream.h"
#include "server/routes.h"

namespace muster::server {

namespace {

using base::Result;
using control::Controller;
using http::Request;
using http::Respond;
using http::Response;

bool says_true(const Request& request, std::string_view parameter) {
  const auto found = request.query.find(std::string(parameter));
  return found != request.query.end() && found->second == "true";
}

Response job_answer(int status, const Result<job::Job>& job) {
  return job ? json_answer(status, api::job_to_json(*job)) : problem(job.error());
}

Response jobs_answer(const std::vector<const job::Job*>& jobs) {
  std::vector<job::Job> copies;
  copies.reserve(jobs.size());
  for (const job::Job* job : jobs) copies.push_back(*job);
  return json_answer(200, api::jobs_to_json(copies));
}

Response forecast(const Controller& controller, const job::JobSpec& spec) {
  const auto forecast = controller.forecast(spec);
  return forecast ? json_answer(200, api::forecast_to_json(*forecast)) : problem(forecast.error());
}

/// Answers once the job is committed, with whatever else comes in at that time.
void submit(Controller& controller, const Request& request, const Respond& respond) {
  const auto spec = api::spec_from_json(request.body);
  if (!spec) return respond(problem(spec.error()));
  if (says_true(request, api::kDryRun)) return respond(forecast(controller, *spec));
  const auto key = request.headers.find(std::string(api::kIdempotencyKey));
  controller.submit(*spec, key == request.headers.end() ? std::string() : key->second,
                    [respond](const Result<job::Job>& job) { respond(job_answer(201, job)); });
}

Response get(const Controller& controller, const std::string& name) {
  const auto job = controller.find(name);
  return job ? json_answer(200, api::job_to_json(**job)) : problem(job.error());
}

Response remove(Controller& controller, const std::string& name) {
  const auto removed = controller.remove(name);
  return removed ? Response{.status = 204} : problem(removed.error());
}

Response explain(const Controller& controller, const std::string& name) {
  const auto explanation = controller.explain(name);
  return explanation ? json_answer(200, api::explanation_to_json(*explanation))
                     : problem(explanation.error());
}

bool has_task(const job::Job& job, const std::string& name) {
  for (const job::Task& task : job.tasks) {
    if (task.name == name) return true;
  }
  return false;
}

Response logs(Controller& controller, const Request& request, const std::string& name) {
  const auto job = controller.find(name);
  if (!job) return problem(job.error());
  const auto query = api::log_query_from_parameters(request.query);
  if (!query) return problem(query.error());
  if (query->task && !has_task(**job, *query->task)) {
    return problem({.code = base::ErrorCode::kNotFound,
                    .what = "job '" + name + "' has no task '" + *query->task + "'",
                    .advice = "muster get " + name + " shows its tasks"});
  }
  return {.content_type = std::string(http::kEventStream),
          .stream = std::make_shared<LogStream>(controller, name, *query)};
}

}  // namespace

void add_job_routes(Router& router, Controller& controller) {
  router.add("POST", "/v1/jobs",
             [&](const Request& request, const PathValues&, const Respond& respond) {
               submit(controller, request, respond);
             });
  router.add("GET", "/v1/jobs", [&](const Request&, const PathValues&, const Respond& respond) {
    respond(jobs_answer(controller.list()));
  });
  router.add("GET", "/v1/queue", [&](const Request&, const PathValues&, const Respond& respond) {
    respond(jobs_answer(controller.queue()));
  });
  router.add("GET", "/v1/jobs/{name}",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(get(controller, path.at("name")));
             });
  router.add("DELETE", "/v1/jobs/{name}",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(remove(controller, path.at("name")));
             });
  router.add(
      "POST", "/v1/jobs/{name}/stop",
      [&](const Request& request, const PathValues& path, const Respond& respond) {
        respond(job_answer(200, controller.stop(path.at("name"), says_true(request, "now"))));
      });
  router.add("POST", "/v1/jobs/{name}/suspend",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(job_answer(200, controller.suspend(path.at("name"))));
             });
  router.add("POST", "/v1/jobs/{name}/resume",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(job_answer(200, controller.resume(path.at("name"))));
             });
  router.add("GET", "/v1/jobs/{name}/explain",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(explain(controller, path.at("name")));
             });
  router.add("GET", "/v1/jobs/{name}/logs",
             [&](const Request& request, const PathValues& path, const Respond& respond) {
               respond(logs(controller, request, path.at("name")));
             });
}

}  // namespace muster::server
