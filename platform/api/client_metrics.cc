// The client's request for what was measured of a job.
#include "api/client.h"
#include "api/metric_wire.h"
#include "api/requests.h"
#include "api/routes.h"

namespace muster::api {

Result<std::vector<job::MetricSeries>> Client::metrics(const std::string& name,
                                                       const job::MetricQuery& query) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = job_request("GET", name, kMetricsAction);
  request.query.merge(metric_query_to_parameters(query));
  MUSTER_TRY(const http::Response response, call(request));
  return metrics_from_json(response.body);
}

}  // namespace muster::api
