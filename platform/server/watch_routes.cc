// GET /v1/watch/jobs and /v1/watch/events: what the caller may ask for.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/fields.h"
#include "api/query_parameters.h"
#include "api/routes.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"
#include "base/units.h"
#include "control/controller.h"
#include "http/message.h"
#include "job/job.h"
#include "server/event_stream.h"
#include "server/event_watch.h"
#include "server/job_watch.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"
#include "server/watch_filter.h"

namespace muster::server {

namespace {

using base::Error;
using base::Fault;
using base::Result;
using control::Controller;

Error wrong_query(std::vector<Fault> faults) {
  return api::wrong_query("the query for events is invalid", std::move(faults));
}

/// A fault for each parameter that is not in `known`.
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

/// Whether a parameter is "true"; its fault is added.
bool flag_of(const http::Request& request, const std::string& name, bool usual,
             std::vector<Fault>& faults) {
  if (!request.query.contains(name)) return usual;
  bool flag = false;
  std::string fault = api::take_flag(parameter(request, name), flag);
  if (!fault.empty()) faults.push_back({.field = name, .what = std::move(fault)});
  return flag;
}

RouteAnswer watch_jobs(base::EventLoop& loop, Controller& controller, const ApiCall& call) {
  const http::Request& request = call.request;
  std::vector<Fault> faults = unknown_parameters(
      request, {"project", "name", "existing", "rows", std::string(api::kLastEventIdParameter)});
  JobWatchStream::Start start;
  start.as_rows = flag_of(request, "rows", false, faults);
  const bool existing = flag_of(request, "existing", true, faults);
  const std::string id = last_event_id(request);
  start.from = control::feed_position_of(id);
  if (!id.empty() && !start.from) {
    faults.push_back(
        {.field = "last-event-id", .what = base::in_quotes(id) + " is not the id of an event"});
  }
  if (!faults.empty()) return wrong_query(std::move(faults));
  const bool is_new = !start.from;
  if (is_new && !existing) start.from = controller.feed().now();
  MUSTER_TRY(start.filter, filter_of(Sight(controller, call.who), request));
  start.begins_ready = is_new && !existing;
  return event_answer(
      std::make_shared<JobWatchStream>(StreamLife{.loop = loop, .still_valid = call.still_valid},
                                       controller, call.who, std::move(start)));
}

template <size_t... alternatives>
std::vector<std::string> all_kinds_of_facts(std::index_sequence<alternatives...> /*all*/) {
  return {std::string(std::variant_alternative_t<alternatives, job::Fact>::kKind)...};
}

/// The start: the last event that the client saw, or a time.
Result<std::optional<base::Time>> begin_of(const http::Request& request) {
  std::vector<Fault> faults = unknown_parameters(
      request, {"project", "name", "since", "kind", std::string(api::kLastEventIdParameter)});
  static const std::vector<std::string> kinds =
      all_kinds_of_facts(std::make_index_sequence<std::variant_size_v<job::Fact>>());
  const std::string kind = parameter(request, "kind");
  if (request.query.contains("kind") &&
      std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    faults.push_back({.field = "kind", .what = base::in_quotes(kind) + " is not a kind of event"});
  }
  std::optional<base::Time> after;
  const std::string since = parameter(request, "since");
  if (request.query.contains("since")) {
    after = api::parse_rfc3339(since);
    if (after) *after -= std::chrono::nanoseconds(1);
    if (!after) {
      faults.push_back(
          {.field = "since",
           .what = base::in_quotes(since) + " is not a time such as 2026-01-31T12:34:56Z"});
    }
  }
  const std::string id = last_event_id(request);
  if (!id.empty()) {
    after = time_of_id(id);
    if (!after) {
      faults.push_back(
          {.field = "last-event-id", .what = base::in_quotes(id) + " is not the id of an event"});
    }
  }
  if (!faults.empty()) return wrong_query(std::move(faults));
  return after;
}

RouteAnswer watch_events(base::EventLoop& loop, Controller& controller,
                         const std::shared_ptr<EventHorizon>& horizon, const ApiCall& call) {
  const Sight sight(controller, call.who);
  EventWatchStream::Start start;
  MUSTER_TRY(start.after, begin_of(call.request));
  start.kind = parameter(call.request, "kind");
  MUSTER_TRY(start.filter, filter_of(sight, call.request));
  if (start.filter.name) {
    MUSTER_TRY(
        const job::Job* const job,
        sight.job(*start.filter.name, start.filter.project.value_or(""), access::Role::kViewer));
    start.job = job->id;
  }
  return event_answer(
      std::make_shared<EventWatchStream>(StreamLife{.loop = loop, .still_valid = call.still_valid},
                                         controller, horizon, call.who, std::move(start)));
}

}  // namespace

void add_watch_routes(Router& router, base::EventLoop& loop, Controller& controller) {
  router.add("GET", api::kWatchJobsPath, Permission::kSignedIn,
             at_once([&loop, &controller](const ApiCall& call) {
               return watch_jobs(loop, controller, call);
             }));
  const auto horizon = std::make_shared<EventHorizon>(controller);
  router.add("GET", api::kWatchEventsPath, Permission::kSignedIn,
             at_once([&loop, &controller, horizon](const ApiCall& call) {
               return watch_events(loop, controller, horizon, call);
             }));
}

}  // namespace muster::server
