// The client's requests on the artifacts of jobs.
#include "api/artifact_wire.h"
#include "api/client.h"
#include "api/requests.h"
#include "api/routes.h"

namespace muster::api {

Result<ArtifactPage> Client::artifacts(const std::string& name, const ArtifactQuery& query) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = job_request("GET", name, kArtifactsAction);
  request.query.merge(artifact_query_to_parameters(query));
  MUSTER_TRY(const http::Response response, call(request));
  return artifacts_from_json(response.body);
}

Result<void> Client::artifact(const std::string& name, const ArtifactWish& wish,
                              const std::function<bool(std::string_view)>& on_bytes,
                              const http::Wake& wake) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = authorized(job_request("GET", name, kArtifactAction));
  request.query[std::string(kArtifactPath)] = wish.path;
  if (wish.from > 0) request.headers["range"] = "bytes=" + std::to_string(wish.from) + "-";
  if (!wish.sha256.empty()) request.headers["if-match"] = etag_of(wish.sha256);
  MUSTER_TRY(const http::Response response, http_.stream(request, on_bytes, wake));
  if (response.status >= 400) return problem(request, response);
  return {};
}

}  // namespace muster::api
