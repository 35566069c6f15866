// GET /v1/watch/jobs and /v1/watch/events.
#include <algorithm>
#include <memory>

#include "api/fields.h"
#include "api/query_parameters.h"
#include "api/routes.h"
#include "base/number.h"
#include "base/text.h"
#include "server/answers.h"
#include "server/event_watch.h"
#include "server/job_watch.h"
#include "server/parameters.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using base::Error;
using base::Fault;
using base::Result;
using control::Controller;

Error wrong_query(std::vector<Fault> faults) {
  return api::wrong_query("the query for what happens is wrong", std::move(faults));
}

/// What is not among `known`, each as a fault.
std::vector<Fault> unknown_parameters(const http::Request& request,
                                      const std::vector<std::string>& known) {
  return api::read_parameters(
      request.query, [&](const std::string& name, const std::string& /*value*/) {
        const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
        return is_known ? "" : api::unknown_parameter(name, known);
      });
}

std::optional<base::Time> time_of_id(const std::string& id) {
  const auto nanoseconds = base::number_of<int64_t>(id);
  if (!nanoseconds) return std::nullopt;
  return base::Time(std::chrono::nanoseconds(*nanoseconds));
}

Result<WatchFilter> filter_of(const Sight& sight, const http::Request& request) {
  WatchFilter filter;
  if (request.query.contains("project")) filter.project = parameter(request, "project");
  if (request.query.contains("name")) filter.name = parameter(request, "name");
  if (filter.project) MUSTER_CHECK(sight.project(*filter.project, access::Role::kViewer));
  return filter;
}

Answer watch_jobs(base::EventLoop& loop, Controller& controller, const Call& call) {
  const http::Request& request = call.request;
  std::vector<Fault> faults =
      unknown_parameters(request, {"project", "name", std::string(api::kLastEventIdParameter)});
  const std::string id = last_event_id(request);
  const auto from = control::feed_position_of(id);
  if (!id.empty() && !from) {
    faults.push_back({.field = "last-event-id", .what = base::in_quotes(id) + " is no event's id"});
  }
  if (!faults.empty()) return wrong_query(std::move(faults));
  MUSTER_TRY(WatchFilter filter, filter_of(Sight(controller, call.who), request));
  return event_answer(
      std::make_shared<JobWatch>(StreamLife{.loop = loop, .still_valid = call.still_valid},
                                 controller, call.who, std::move(filter), from));
}

/// From when on: the last event that was seen, or a time.
Result<std::optional<base::Time>> begin_of(const http::Request& request) {
  std::vector<Fault> faults = unknown_parameters(
      request, {"project", "name", "since", std::string(api::kLastEventIdParameter)});
  std::optional<base::Time> after;
  const std::string since = parameter(request, "since");
  if (request.query.contains("since")) {
    after = api::parse_rfc3339(since);
    if (after) *after -= std::chrono::nanoseconds(1);
    if (!after) {
      faults.push_back(
          {.field = "since",
           .what = base::in_quotes(since) + " is not a time; write it as 2026-01-31T12:34:56Z"});
    }
  }
  const std::string id = last_event_id(request);
  if (!id.empty()) {
    after = time_of_id(id);
    if (!after) {
      faults.push_back(
          {.field = "last-event-id", .what = base::in_quotes(id) + " is no event's id"});
    }
  }
  if (!faults.empty()) return wrong_query(std::move(faults));
  return after;
}

Answer watch_events(base::EventLoop& loop, Controller& controller,
                    const std::shared_ptr<EventHorizon>& horizon, const Call& call) {
  const Sight sight(controller, call.who);
  EventWatch::Start start;
  MUSTER_TRY(start.after, begin_of(call.request));
  MUSTER_TRY(start.filter, filter_of(sight, call.request));
  if (start.filter.name) {
    MUSTER_TRY(
        const job::Job* const job,
        sight.job(*start.filter.name, start.filter.project.value_or(""), access::Role::kViewer));
    start.job = job->id;
  }
  return event_answer(
      std::make_shared<EventWatch>(StreamLife{.loop = loop, .still_valid = call.still_valid},
                                   controller, horizon, call.who, std::move(start)));
}

}  // namespace

void add_watch_routes(Router& router, base::EventLoop& loop, Controller& controller) {
  router.add("GET", api::kWatchJobsPath, Permission::kSignedIn,
             at_once([&loop, &controller](const Call& call) {
               return watch_jobs(loop, controller, call);
             }));
  const auto horizon = std::make_shared<EventHorizon>(controller);
  router.add("GET", api::kWatchEventsPath, Permission::kSignedIn,
             at_once([&loop, &controller, horizon](const Call& call) {
               return watch_events(loop, controller, horizon, call);
             }));
}

}  // namespace muster::server
