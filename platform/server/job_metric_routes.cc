// GET /v1/jobs/{name}/metrics.
#include <utility>

#include "api/metric_wire.h"
#include "server/answers.h"
#include "server/named.h"
#include "server/parameters.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using base::Result;

struct MetricWish {
  std::string job;  ///< its id
  job::MetricQuery query;
};

Result<MetricWish> metric_wish_of(const control::Controller& controller, const Call& call) {
  const Sight sight(controller, call.who);
  const std::string& name = call.path.at("name");
  MUSTER_TRY(const job::Job* const job,
             sight.job(name, parameter(call.request, "project"), access::Role::kViewer));
  MUSTER_TRY(job::MetricQuery query, api::metric_query_from_parameters(call.request.query));
  MUSTER_CHECK(check_task(*job, query.task));
  return MetricWish{.job = job->id, .query = std::move(query)};
}

void metrics(const control::Controller& controller, const Call& call,
             const http::Respond& respond) {
  const auto wish = metric_wish_of(controller, call);
  if (!wish) return respond(problem(wish.error()));
  controller.read_metrics(
      wish->job, wish->query, [respond](const Result<std::vector<job::MetricSeries>>& series) {
        respond(series ? json_answer(200, api::metrics_to_json(*series)) : problem(series.error()));
      });
}

}  // namespace

void add_job_metric_routes(Router& router, control::Controller& controller) {
  router.add("GET", "/v1/jobs/{name}/metrics", Permission::kSignedIn,
             [&controller](const Call& call, const http::Respond& respond) {
               metrics(controller, call, respond);
             });
}

}  // namespace muster::server
