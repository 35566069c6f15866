// The routes of single jobs: submit, read a job file, show, change and explain.

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/job_query.h"
#include "api/routes.h"
#include "api/wire.h"
#include "job/spec_table.h"
#include "job/validate.h"
#include "server/listed_objects.h"
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
using http::Respond;
using http::Response;

/// The job in the path, if the caller has `needed` in its project.
Result<const job::Job*> job_of(const Sight& sight, const ApiCall& call, Role needed) {
  return sight.job(call.path.at("name"), parameter(call.request, "project"), needed);
}

Result<control::Arrays::JoblessMember> jobless_of(const Sight& sight, const ApiCall& call,
                                                  Role needed) {
  return sight.jobless(call.path.at("name"), parameter(call.request, "project"), needed);
}

Response job_answer(int status, const Sight& sight, job::Job job) {
  return json_answer(status, api::job_to_json(sight.shown(std::move(job))));
}

// --- submit

/// The key for the controller: it includes the user, because two users may choose the same key.
Result<std::string> idempotency_key_of(const ApiCall& call) {
  constexpr size_t kLongest = 200;
  const std::string key = header(call.request, api::kIdempotencyKey);
  if (key.size() > kLongest) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the idempotency key has " + std::to_string(key.size()) + " bytes",
                 .advice = "give one of " + std::to_string(kLongest) + " at most"};
  }
  return key.empty() ? key : call.who.user + "\n" + key;
}

/// The manner in the parameters of a request. A job that is repeated must be visible to the caller.
Result<control::SubmitManner> manner_of(const ApiCall& call, const Sight& sight) {
  control::SubmitManner manner{.name_template =
                                   parameter(call.request, std::string(api::kNameTemplate))};
  MUSTER_TRY(manner.name_suffix, flag_parameter(call.request, api::kNameSuffix));
  const std::string repeated = parameter(call.request, std::string(api::kRerunOf));
  if (repeated.empty()) return manner;
  MUSTER_TRY(const job::Job* const job, sight.job(repeated, "", Role::kViewer));
  manner.origin =
      job::JobOrigin{.kind = job::JobOrigin::Kind::kRerun, .name = job->spec.name, .id = job->id};
  return manner;
}

/// For an answer about a spec: without the names that the caller may not see, and with the API's
/// names of fields.
Error refused_spec(const Sight& sight, const Error& error) {
  return api::with_api_names<job::JobSpec>(sight.redacted(error));
}

RouteAnswer forecast(const Controller& controller, const Sight& sight, const job::JobSpec& spec,
                     const control::SubmitManner& manner) {
  const auto forecast = controller.forecast(spec, manner);
  if (!forecast) return refused_spec(sight, forecast.error());
  return json_answer(200, api::forecast_to_json(sight.redacted(*forecast)));
}

/// The user's role may have changed since the key was used first.
Error used_for_unseen(const std::string& object) {
  return {.code = ErrorCode::kConflict,
          .what = "this idempotency key was used for " + object + " that you can no longer see",
          .advice = "submit the job with another key"};
}

RouteAnswer submitted(const Sight& sight, const Result<job::Job>& job) {
  if (!job) return refused_spec(sight, job.error());
  if (sight.sees(*job)) return job_answer(201, sight, *job);
  return used_for_unseen("a job");
}

RouteAnswer submitted(const Sight& sight, job::Array array) {
  if (!sight.sees(array)) return used_for_unseen("an array");
  return json_answer(202, api::array_to_json(sight.shown(std::move(array))));
}

RouteAnswer submit_array(Controller& controller, const Sight& sight, const job::JobSpec& spec,
                         const std::string& key, const control::SubmitManner& manner,
                         const ApiCall& call) {
  auto array = controller.submit_array(spec, key, call.actor(), manner);
  if (!array) return refused_spec(sight, array.error());
  return submitted(sight, *std::move(array));
}

/// The result that the submission would have: the job or the array of an earlier request with the
/// same key, or else a forecast.
RouteAnswer dry_run_of(Controller& controller, const Sight& sight, const job::JobSpec& spec,
                       const std::string& key, const control::SubmitManner& manner) {
  if (spec.array.is_none()) {
    const auto known = controller.submitted_with(spec, key, manner);
    if (!known) return refused_spec(sight, known.error());
    if (*known != nullptr) return submitted(sight, Result<job::Job>(**known));
  } else {
    auto known = controller.array_submitted_with(spec, key, manner);
    if (!known) return refused_spec(sight, known.error());
    if (*known) return submitted(sight, **std::move(known));
  }
  return forecast(controller, sight, spec, manner);
}

/// Answers when the job is committed, together with other changes of that time.
void submit(Controller& controller, const ApiCall& call, const Respond& respond) {
  const auto spec = api::spec_from_json(call.request.body);
  if (!spec) return respond(problem(spec.error()));
  const Sight sight(controller, call.who);
  const auto allowed = sight.project_of_spec(spec->project, Role::kMember);
  if (!allowed) return respond(problem(allowed.error()));
  const auto may_run = sight.may_run_in(spec->sandbox);
  if (!may_run) return respond(problem(may_run.error()));
  const auto dry_run = flag_parameter(call.request, api::kDryRun);
  if (!dry_run) return respond(problem(dry_run.error()));
  const auto manner = manner_of(call, sight);
  if (!manner) return respond(problem(manner.error()));
  const auto key = idempotency_key_of(call);
  if (!key) return respond(problem(key.error()));
  if (*dry_run) {
    return respond(answered(dry_run_of(controller, sight, *spec, *key, *manner)));
  }
  if (!spec->array.is_none()) {
    return respond(answered(submit_array(controller, sight, *spec, *key, *manner, call)));
  }
  controller.submit(
      *spec, *key,
      [&controller, who = call.who, respond](const Result<job::Job>& job) {
        respond(answered(submitted(Sight(controller, who), job)));
      },
      call.actor(), *manner);
}

// --- one job

RouteAnswer get_job(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  const auto job = job_of(sight, call, Role::kViewer);
  if (job) return job_answer(200, sight, **job);
  // A member of an array that has no job is shown as the job that it would be, or was.
  if (auto member = jobless_of(sight, call, Role::kViewer)) {
    return job_answer(200, sight, std::move(member->job));
  }
  return job.error();
}

RouteAnswer remove_job(Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const job::Job* const job, job_of(sight, call, Role::kMember));
  MUSTER_CHECK(controller.remove(std::string(job->id), call.actor()));
  return nothing_more();
}

using JobChange = std::function<Result<job::Job>(const std::string& id, const ApiCall& call)>;

RouteHandler changing_job(Controller& controller, JobChange change) {
  return at_once([&controller, change = std::move(change)](const ApiCall& call) -> RouteAnswer {
    const Sight sight(controller, call.who);
    MUSTER_TRY(const job::Job* const job, job_of(sight, call, Role::kMember));
    MUSTER_TRY(job::Job changed, change(job->id, call));
    return job_answer(200, sight, std::move(changed));
  });
}

/// Also stops a member of an array that has no job yet.
RouteAnswer stop_job(Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const bool now, flag_parameter(call.request, "now"));
  const auto job = job_of(sight, call, Role::kMember);
  if (job) {
    MUSTER_TRY(job::Job stopped, controller.stop((*job)->id, now, call.actor()));
    return job_answer(200, sight, std::move(stopped));
  }
  const auto member = jobless_of(sight, call, Role::kMember);
  if (!member) return job.error();
  MUSTER_CHECK(controller.arrays().stop_jobless(*member, call.actor()));
  MUSTER_TRY(control::Arrays::JoblessMember stopped, jobless_of(sight, call, Role::kMember));
  return job_answer(200, sight, std::move(stopped.job));
}

/// Labels are for people and programs; the scheduler ignores them.
Result<job::Job> set_labels(Controller& controller, const std::string& id, const ApiCall& call) {
  MUSTER_TRY(const auto changes, api::label_changes_from_json(call.request.body));
  return controller.set_labels(id, changes, call.actor());
}

// --- the queue

std::vector<const job::Job*> visible_queue(Controller& controller, const Sight& sight) {
  std::vector<const job::Job*> jobs = controller.queue();
  std::erase_if(jobs, [&](const job::Job* job) { return !sight.sees(*job); });
  return jobs;
}

RouteAnswer queue(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const api::QueueQuery query, api::queue_query_from_parameters(call.request.query));
  const Sight sight(controller, call.who);
  std::vector<const job::Job*> jobs = visible_queue(controller, sight);
  const auto last = std::find_if(jobs.begin(), jobs.end(),
                                 [&](const job::Job* job) { return job->id == query.cursor; });
  if (last != jobs.end()) jobs.erase(jobs.begin(), last + 1);
  const auto limit = static_cast<size_t>(query.limit);
  bool has_next = jobs.size() > limit;
  if (has_next) jobs.resize(limit);
  has_next = leave_off_what_is_too_much(jobs) || has_next;
  // A plan notes reasons only when they change, and no expected start: the first jobs of the queue
  // get those of now, in the answer alone.
  constexpr size_t kRefreshed = 20;
  std::deque<job::Job> copies;  // elements keep their addresses
  for (const job::Job*& job : jobs) {
    job::Job copy = *job;
    if (query.cursor.empty() && copies.size() < kRefreshed) {
      if (auto now = controller.explain(copy.id)) {
        copy.reason = std::move(now->reason);
        copy.may_start = now->may_start;
      }
    }
    job = &copies.emplace_back(sight.shown(std::move(copy)));
  }
  return json_answer(200, api::job_page_to_json(jobs, has_next ? jobs.back()->id : ""));
}

/// The position among the jobs that the caller sees: the number of other projects' waiting jobs is
/// hidden.
int position_of(Controller& controller, const Sight& sight, const std::string& id) {
  const std::vector<const job::Job*> jobs = visible_queue(controller, sight);
  const auto place =
      std::find_if(jobs.begin(), jobs.end(), [&](const job::Job* job) { return job->id == id; });
  return place == jobs.end() ? 0 : static_cast<int>(place - jobs.begin()) + 1;
}

RouteAnswer explain(Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  const auto found = job_of(sight, call, Role::kViewer);
  if (!found) {
    const auto member = jobless_of(sight, call, Role::kViewer);
    if (!member) return found.error();
    return json_answer(200, api::explanation_to_json({.name = member->job.spec.name,
                                                      .phase = member->job.phase,
                                                      .reason = member->job.reason}));
  }
  const job::Job* const job = *found;
  MUSTER_TRY(job::Explanation explanation, controller.explain(job->id));
  if (!sight.sees_all() && explanation.position > 0) {
    explanation.position = position_of(controller, sight, job->id);
  }
  return json_answer(200, api::explanation_to_json(sight.redacted(std::move(explanation))));
}

}  // namespace

void add_job_routes(Router& router, Controller& controller) {
  const auto add = [&](const char* method, const char* path, RouteHandler handler) {
    router.add(method, path, Permission::kSignedIn, std::move(handler));
  };
  add("POST", "/v1/jobs", [&controller](const ApiCall& call, const Respond& respond) {
    submit(controller, call, respond);
  });
  add("POST", "/v1/job-file", at_once([](const ApiCall& call) -> RouteAnswer {
        MUSTER_TRY(const job::JobSpec spec, api::spec_from_job_file(call.request.body));
        return json_answer(200, api::spec_to_json(spec));
      }));
  add("GET", "/v1/queue",
      at_once([&controller](const ApiCall& call) { return queue(controller, call); }));
  add("GET", "/v1/jobs/{name}",
      at_once([&controller](const ApiCall& call) { return get_job(controller, call); }));
  add("DELETE", "/v1/jobs/{name}",
      at_once([&controller](const ApiCall& call) { return remove_job(controller, call); }));
  add("PATCH", "/v1/jobs/{name}",
      changing_job(controller, [&controller](const std::string& id, const ApiCall& call) {
        return set_labels(controller, id, call);
      }));
  add("POST", "/v1/jobs/{name}/stop",
      at_once([&controller](const ApiCall& call) { return stop_job(controller, call); }));
  add("POST", "/v1/jobs/{name}/suspend",
      changing_job(controller, [&controller](const std::string& id, const ApiCall& call) {
        return controller.suspend(id, call.actor());
      }));
  add("POST", "/v1/jobs/{name}/resume",
      changing_job(controller, [&controller](const std::string& id, const ApiCall& call) {
        return controller.resume(id, call.actor());
      }));
  add("GET", "/v1/jobs/{name}/explain",
      at_once([&controller](const ApiCall& call) { return explain(controller, call); }));
}

// GET /v1/jobs/{name}/metrics.

namespace {

struct MetricRequest {
  std::string job;  ///< its id
  job::MetricQuery query;
};

Result<MetricRequest> metric_request_of(const control::Controller& controller,
                                        const ApiCall& call) {
  const Sight sight(controller, call.who);
  const std::string& name = call.path.at("name");
  MUSTER_TRY(const job::Job* const job,
             sight.job(name, parameter(call.request, "project"), access::Role::kViewer));
  MUSTER_TRY(job::MetricQuery query, api::metric_query_from_parameters(call.request.query));
  MUSTER_CHECK(check_task(*job, query.task));
  return MetricRequest{.job = job->id, .query = std::move(query)};
}

void metrics(const control::Controller& controller, const ApiCall& call,
             const http::Respond& respond) {
  const auto request = metric_request_of(controller, call);
  if (!request) return respond(problem(request.error()));
  controller.read_metrics(
      request->job, request->query,
      [respond](const Result<std::vector<job::MetricSeries>>& series) {
        respond(series ? json_answer(200, api::metrics_to_json(*series)) : problem(series.error()));
      });
}

}  // namespace

void add_job_metric_routes(Router& router, control::Controller& controller) {
  router.add("GET", "/v1/jobs/{name}/metrics", Permission::kSignedIn,
             [&controller](const ApiCall& call, const http::Respond& respond) {
               metrics(controller, call, respond);
             });
}

}  // namespace muster::server
