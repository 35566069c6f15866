// GET /v1/jobs/{name}/logs.
#include <memory>

#include "api/log_query.h"
#include "api/log_stream.h"
#include "logs/log_position.h"
#include "server/answers.h"
#include "server/log_share.h"
#include "server/log_stream.h"
#include "server/named.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

base::Error wrong_place() {
  return {.code = base::ErrorCode::kInvalid,
          .what = "the last event's id is none of a stream of logs",
          .advice = "send it as it came, or none to begin anew"};
}

/// Frames only for those who ask for them by name.
LogFormat wanted_format(const http::Request& request) {
  const auto accept = request.headers.find("accept");
  const bool frames = accept != request.headers.end() &&
                      accept->second.find(api::kLogStreamType) != std::string::npos;
  return frames ? LogFormat::kFrames : LogFormat::kEvents;
}

Answer logs(base::EventLoop& loop, control::Controller& controller, LogShares& shares,
            const Call& call) {
  const Sight sight(controller, call.who);
  const auto project = call.request.query.find("project");
  const std::string& name = call.path.at("name");
  MUSTER_TRY(const job::Job* const job,
             sight.job(name, project == call.request.query.end() ? "" : project->second,
                       access::Role::kViewer));
  MUSTER_TRY(job::LogQuery query, api::log_query_from_parameters(call.request.query));
  MUSTER_CHECK(check_task(*job, query.task));
  const std::string place = last_event_id(call.request);
  if (!place.empty() && !logs::log_position_of(place)) return wrong_place();
  const LogFormat format = wanted_format(call.request);
  return event_answer(
      std::make_shared<LogStream>(
          StreamLife{.loop = loop, .still_valid = call.still_valid}, controller, shares, call.who,
          LogStream::Start{
              .job = job->id, .query = std::move(query), .place = place, .format = format}),
      format == LogFormat::kFrames ? api::kLogStreamType : http::kEventStream);
}

}  // namespace

void add_log_routes(Router& router, base::EventLoop& loop, control::Controller& controller) {
  const auto shares = std::make_shared<LogShares>(controller);
  router.add("GET", "/v1/jobs/{name}/logs", Permission::kSignedIn,
             at_once([&loop, &controller, shares](const Call& call) {
               return logs(loop, controller, *shares, call);
             }));
}

}  // namespace muster::server
