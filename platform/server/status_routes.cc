// GET /healthz, /readyz, /metrics, /openapi.json: for those who look after the server.
#include "api/openapi.h"
#include "api/routes.h"
#include "server/answers.h"
#include "server/metrics_text.h"
#include "server/process_figures.h"
#include "server/routes.h"
#include "server/server_metrics.h"

namespace muster::server {

namespace {

/// The store's words may name its place: they are for the log, not for anybody who asks.
Answer readiness(control::Controller& controller) {
  if (controller.ready()) return json_answer(200, R"({"status":"ok"})");
  return base::Error{.code = base::ErrorCode::kUnavailable,
                     .what = "the store takes no changes right now",
                     .advice = "the server's log says why"};
}

}  // namespace

void add_status_routes(Router& router, control::Controller& controller,
                       const RequestCounts& requests, std::string version) {
  router.add("GET", api::kHealthPath, Permission::kAnybody,
             at_once([](const Call&) -> Answer { return json_answer(200, R"({"status":"ok"})"); }));
  router.add("GET", api::kReadyPath, Permission::kAnybody,
             at_once([&controller](const Call&) { return readiness(controller); }));
  router.add("GET", api::kOpenApiPath, Permission::kAnybody, at_once([](const Call&) -> Answer {
               return json_answer(200, std::string(api::openapi_document()));
             }));
  router.add("GET", api::kMetricsPath, Permission::kServerViewer,
             at_once([&controller, &requests, version = std::move(version)](const Call&) -> Answer {
               return http::Response{
                   .content_type = std::string(kMetricsType),
                   .body = server_metrics(controller, requests, process_figures(), version)};
             }));
}

}  // namespace muster::server
