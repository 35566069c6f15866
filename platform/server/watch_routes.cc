// GET /v1/watch/jobs and /v1/watch/events.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "access/identity.h"
#include "api/array_wire.h"
#include "api/fields.h"
#include "api/query_parameters.h"
#include "api/routes.h"
#include "api/schedule_wire.h"
#include "api/wire.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"
#include "base/units.h"
#include "control/controller.h"
#include "control/sweeps.h"
#include "http/message.h"
#include "http/server_sent_events.h"
#include "job/job.h"
#include "server/event_stream.h"
#include "server/listed_objects.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

// The time up to which all events of jobs are known and stored.
//
// Events get increasing times when they are recorded, but the feed of changes reports them after
// they are committed, job by job. A reader in between could see a newer event of one job before an
// older event of another; so readers do not read past this time.
//
// On the EventLoop's thread. One for all watchers, created before them: the feed calls it first.

class EventHorizon {
 public:
  /// The controller must outlive it.
  explicit EventHorizon(control::Controller& controller);

  /// The time of the last event that may be read.
  base::Time time();

 private:
  void look_at_all();
  void look_at_changes();

  control::Controller& controller_;
  control::FeedPosition at_;
  base::Time time_{};
  bool known_ = false;  ///< time() was called
  std::shared_ptr<void> feed_watch_;
};

// The jobs that a watcher requested.
//
// Plain values.

struct WatchFilter {
  std::optional<std::string> project;
  std::optional<std::string> name;

  bool takes(const std::string& of_project, const std::string& of_name) const {
    return (!project || *project == of_project) && (!name || *name == of_name);
  }
  /// Also requires that the caller sees the job.
  bool takes(const Sight& sight, const job::Job& job) const {
    return takes(job.spec.project, job.spec.name) && sight.sees(job);
  }
};

// The events of the jobs that the caller sees, as server-sent events: one "event" for each line of
// their histories, in the order of time, which is also the id.
//
// A job's history contains only its last events; a reader that is slower misses some.
//
// On the EventLoop's thread.

class EventWatchStream : public EventStream {
 public:
  struct Start {
    WatchFilter filter;
    /// The id of a job: only its events, and an "end" with the job when it has ended.
    std::optional<std::string> job;
    std::optional<base::Time> after;  ///< only later events; nothing: only future events
    std::string kind;                 ///< of their facts; empty: all
  };

  /// Controller and horizon must outlive it.
  EventWatchStream(StreamLife life, control::Controller& controller,
                   std::shared_ptr<EventHorizon> horizon, access::Identity who, Start start);

 protected:
  std::optional<http::BodyPiece> next() override;

 private:
  struct Found {
    base::Time time;
    const job::Job* job = nullptr;
    const job::Event* event = nullptr;
  };

  std::vector<Found> find_some(const Sight& sight, base::Time horizon);
  std::vector<Found> find_in_all(const Sight& sight, base::Time horizon);
  bool find_in_changed(const Sight& sight, base::Time horizon, std::vector<Found>& found);
  void find_in(const Sight& sight, const job::Job& job, base::Time horizon,
               std::vector<Found>& found) const;
  std::optional<http::BodyPiece> end_if_over(const Sight& sight);

  control::Controller& controller_;
  std::shared_ptr<EventHorizon> horizon_;
  access::Identity who_;
  Start start_;
  base::Time last_;         ///< all events up to it were sent or are hidden
  bool caught_up_ = false;  ///< only jobs that change after at_ can have later events
  control::FeedPosition at_;
  bool told_where_;  ///< the client has an id from which it can continue
  bool ended_ = false;
  std::shared_ptr<void> feed_watch_;
};

// The jobs that the caller sees, and then each change, as server-sent events: "job" for each job,
// "ready" when all were sent, then "job" and "removed" as they occur. However many changes a slow
// reader is behind, it gets only the last state of each job, and nothing is stored for it.
//
// On the EventLoop's thread.

class JobWatchStream : public EventStream {
 public:
  /// Start::from: the last id that the client saw; nothing: begins with all jobs. The controller
  /// must outlive it.
  struct Start {
    WatchFilter filter;
    std::optional<control::FeedPosition> from;
    bool begins_ready = false;  ///< first a "ready" event with the position, without the jobs
    bool as_rows = false;       ///< "row" events with rows, instead of "job" events with jobs
  };
  JobWatchStream(StreamLife life, control::Controller& controller, access::Identity who,
                 Start start);

 protected:
  std::optional<http::BodyPiece> next() override;

 private:
  void list_some(std::string& text);
  bool follow_some(std::string& text);
  void append_job(std::string& text, const Sight& sight, const job::Job& job,
                  const std::string& id) const;
  void append_object(std::string& text, const Sight& sight, const std::string& object,
                     const std::string& id) const;
  void append_array(std::string& text, const Sight& sight, const job::Array& array,
                    const std::string& id) const;
  void append_sweep(std::string& text, const Sight& sight, const sweep::SweepSummary& sweep,
                    const std::string& id) const;
  void append_schedule(std::string& text, const Sight& sight, const job::Schedule& schedule,
                       const std::string& id) const;
  void append_change(std::string& text, const Sight& sight,
                     const control::ChangeFeed::Change& change) const;

  control::Controller& controller_;
  access::Identity who_;
  WatchFilter filter_;
  bool as_rows_;
  control::FeedPosition at_;
  bool listing_;
  bool begins_ready_;
  std::optional<base::Time> listed_;  ///< all jobs submitted up to then were listed
  std::shared_ptr<void> feed_watch_;
};

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
  const std::string value = parameter(request, name);
  if (value != "true" && value != "false") {
    faults.push_back(
        {.field = name, .what = base::in_quotes(value) + " is neither true nor false"});
  }
  return value == "true";
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

std::string_view kind_of_fact(const job::Fact& fact) {
  return std::visit([](const auto& each) { return each.kKind; }, fact);
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

namespace {

constexpr size_t kHorizonChangesAtOnce = 256;

base::Time last_event(const job::Job& job) {
  return job.events.empty() ? base::Time() : job.events.back().time;
}

}  // namespace

EventHorizon::EventHorizon(control::Controller& controller)
    : controller_(controller), feed_watch_(controller.feed().watch([this] {
        if (known_) look_at_changes();
      })) {}

base::Time EventHorizon::time() {
  if (!known_) look_at_all();
  return time_;
}

void EventHorizon::look_at_all() {
  known_ = true;
  at_ = controller_.feed().now();
  controller_.jobs().each_job(false, std::nullopt, [this](const job::Job& job) {
    time_ = std::max(time_, last_event(job));
    return true;
  });
}

void EventHorizon::look_at_changes() {
  while (true) {
    const auto changes = controller_.feed().after(at_, kHorizonChangesAtOnce);
    if (!changes) return look_at_all();
    for (const auto& change : *changes) {
      at_.number = change.number;
      const job::Job* const job = controller_.jobs().with_id(change.job);
      if (job != nullptr) time_ = std::max(time_, last_event(*job));
    }
    if (changes->size() < kHorizonChangesAtOnce) return;
  }
}

using job::Job;

namespace {

constexpr size_t kMostEvents = 500;  // at a time
constexpr size_t kEventChangesAtOnce = 200;

}  // namespace

EventWatchStream::EventWatchStream(StreamLife life, control::Controller& controller,
                                   std::shared_ptr<EventHorizon> horizon, access::Identity who,
                                   Start start)
    : EventStream(std::move(life)),
      controller_(controller),
      horizon_(std::move(horizon)),
      who_(std::move(who)),
      start_(std::move(start)),
      last_(start_.after.value_or(horizon_->time())),
      told_where_(start_.after.has_value()),
      feed_watch_(controller.feed().watch([this] { wake(); })) {}

std::optional<http::BodyPiece> EventWatchStream::next() {
  if (ended_) return http::BodyPiece(std::nullopt);
  // A client that has seen no event yet also needs an id from which it can continue.
  if (!std::exchange(told_where_, true)) {
    std::string text;
    http::append_event(text, api::kReadyEvent, "{}",
                       std::to_string(last_.time_since_epoch().count()));
    return http::BodyPiece(std::move(text));
  }
  const Sight sight(controller_, who_);
  const base::Time horizon = horizon_->time();
  while (last_ < horizon) {
    const std::vector<Found> found = find_some(sight, horizon);
    std::string text;
    for (const auto& [time, job, event] : found) {
      http::append_event(text, api::kHistoryEvent,
                         api::job_event_to_json({.time = time,
                                                 .job = job->spec.name,
                                                 .project = job->spec.project,
                                                 .job_id = job->id,
                                                 .what = sight.redacted(event->what)}),
                         std::to_string(time.time_since_epoch().count()));
    }
    last_ = found.size() < kMostEvents ? horizon : found.back().time;
    if (!text.empty()) return http::BodyPiece(std::move(text));
  }
  return end_if_over(sight);
}

/// The first events after last_, at most kMostEvents.
std::vector<EventWatchStream::Found> EventWatchStream::find_some(const Sight& sight,
                                                                 base::Time horizon) {
  std::vector<Found> found;
  if (!caught_up_ || !find_in_changed(sight, horizon, found)) {
    found = find_in_all(sight, horizon);
  }
  std::sort(found.begin(), found.end(),
            [](const Found& left, const Found& right) { return left.time < right.time; });
  return found;
}

std::vector<EventWatchStream::Found> EventWatchStream::find_in_all(const Sight& sight,
                                                                   base::Time horizon) {
  // A heap of the first events after last_, with the latest of these on top.
  const auto earlier = [](const Found& left, const Found& right) { return left.time < right.time; };
  at_ = controller_.feed().now();
  std::vector<Found> first;
  std::vector<Found> of_job;
  controller_.jobs().each_job(false, std::nullopt, [&](const Job& job) {
    of_job.clear();
    find_in(sight, job, horizon, of_job);
    for (const Found& found : of_job) {
      if (first.size() == kMostEvents) {
        if (!earlier(found, first.front())) break;
        std::pop_heap(first.begin(), first.end(), earlier);
        first.pop_back();
      }
      first.push_back(found);
      std::push_heap(first.begin(), first.end(), earlier);
    }
    return true;
  });
  caught_up_ = first.size() < kMostEvents;
  return first;
}

/// False: there are too many, or the changed jobs are unknown.
bool EventWatchStream::find_in_changed(const Sight& sight, base::Time horizon,
                                       std::vector<Found>& found) {
  const auto changes = controller_.feed().after(at_, kEventChangesAtOnce);
  if (!changes || changes->size() == kEventChangesAtOnce) return false;
  for (const auto& change : *changes) {
    const Job* const job = controller_.jobs().with_id(change.job);
    if (job != nullptr) find_in(sight, *job, horizon, found);
  }
  if (found.size() >= kMostEvents) return false;
  if (!changes->empty()) at_.number = changes->back().number;
  return true;
}

void EventWatchStream::find_in(const Sight& sight, const Job& job, base::Time horizon,
                               std::vector<Found>& found) const {
  if (job.events.empty() || job.events.back().time <= last_) return;
  if (start_.job ? job.id != *start_.job : !start_.filter.takes(job.spec.project, job.spec.name)) {
    return;
  }
  if (!sight.sees(job)) return;
  for (const job::Event& event : job.events) {
    if (event.time <= last_ || event.time > horizon) continue;
    if (start_.kind.empty() || kind_of_fact(event.what) == start_.kind) {
      found.push_back({event.time, &job, &event});
    }
  }
}

std::optional<http::BodyPiece> EventWatchStream::end_if_over(const Sight& sight) {
  if (!start_.job) return std::nullopt;
  const Job* const job = controller_.jobs().with_id(*start_.job);
  if (job == nullptr || !sight.sees(*job)) return http::BodyPiece(std::nullopt);
  const bool told = job->events.empty() || job->events.back().time <= last_;
  if (!job::is_final(job->phase) || !told) return std::nullopt;
  ended_ = true;
  std::string text;
  http::append_event(text, api::kEndEvent, api::job_to_json(sight.redacted(*job)));
  return http::BodyPiece(std::move(text));
}

using control::ChangeFeed;
using control::FeedPosition;

namespace {

constexpr size_t kPieceBytes = 128 << 10;
constexpr size_t kJobChangesAtOnce = 100;

/// With the progress of its program, except for ended jobs, for which no files are read.
std::string json_of(const Sight& sight, const Job& job) {
  if (!job::is_final(job.phase)) return api::job_to_json(sight.shown(job));
  return sight.sees_all() ? api::job_to_json(job) : api::job_to_json(sight.redacted(job));
}

}  // namespace

JobWatchStream::JobWatchStream(StreamLife life, control::Controller& controller,
                               access::Identity who, Start start)
    : EventStream(std::move(life)),
      controller_(controller),
      who_(std::move(who)),
      filter_(std::move(start.filter)),
      as_rows_(start.as_rows),
      at_(start.from.value_or(controller.feed().now())),
      listing_(!start.from),
      begins_ready_(start.begins_ready),
      feed_watch_(controller.feed().watch([this] { wake(); })) {}

std::optional<http::BodyPiece> JobWatchStream::next() {
  std::string text;
  if (std::exchange(begins_ready_, false)) {
    http::append_event(text, api::kReadyEvent, "{}", to_string(at_));
  }
  while (text.empty()) {
    if (listing_) {
      list_some(text);
    } else if (!follow_some(text)) {
      return std::nullopt;
    }
  }
  return http::BodyPiece(std::move(text));
}

// Changes during the listing follow afterwards: the feed is read from its position at the start of
// the listing.
void JobWatchStream::list_some(std::string& text) {
  const Sight sight(controller_, who_);
  bool all = true;
  controller_.jobs().each_job(false, listed_, [&](const Job& job) {
    listed_ = job.submitted;
    if (filter_.takes(sight, job)) append_job(text, sight, job, "");
    all = text.size() < kPieceBytes;
    return all;
  });
  if (!all) return;
  for (const job::Array& array : controller_.arrays().list(filter_.project)) {
    append_array(text, sight, array, "");
  }
  for (const sweep::SweepSummary& sweep : controller_.sweeps().list()) {
    append_sweep(text, sight, sweep, "");
  }
  for (const job::Schedule& schedule : controller_.schedules().list(filter_.project)) {
    append_schedule(text, sight, schedule, "");
  }
  listing_ = false;
  http::append_event(text, api::kReadyEvent, "{}", to_string(at_));
}

/// False: nothing has changed.
bool JobWatchStream::follow_some(std::string& text) {
  const auto changes = controller_.feed().after(at_, kJobChangesAtOnce);
  if (!changes) {
    http::append_event(text, api::kResetEvent, "{}");
    at_ = controller_.feed().now();
    listing_ = true;
    listed_.reset();
    return true;
  }
  if (changes->empty()) return false;
  const Sight sight(controller_, who_);
  for (const ChangeFeed::Change& change : *changes) {
    at_.number = change.number;
    append_change(text, sight, change);
    if (text.size() >= kPieceBytes) break;
  }
  return true;
}

void JobWatchStream::append_job(std::string& text, const Sight& sight, const Job& job,
                                const std::string& id) const {
  if (!as_rows_) return http::append_event(text, api::kJobEvent, json_of(sight, job), id);
  http::append_event(text, api::kRowEvent, record::to_json(row_for(controller_, sight, job)), id);
}

void JobWatchStream::append_change(std::string& text, const Sight& sight,
                                   const ChangeFeed::Change& change) const {
  const std::string id = to_string(at_);
  if (change.removed) {
    const bool shown =
        filter_.takes(change.project, change.name) && sight.sees_project(change.project);
    if (!shown) return;
    return http::append_event(
        text, api::kRemovedEvent,
        api::removed_job_to_json(
            {.id = change.job, .name = change.name, .project = change.project}),
        id);
  }
  // A job that was removed meanwhile is reported by a later change.
  const Job* const job = controller_.jobs().with_id(change.job);
  if (job != nullptr) {
    if (filter_.takes(sight, *job)) append_job(text, sight, *job, id);
  } else {
    append_object(text, sight, change.job, id);
  }
}

void JobWatchStream::append_object(std::string& text, const Sight& sight, const std::string& object,
                                   const std::string& id) const {
  if (const auto array = controller_.arrays().with_id(object)) {
    return append_array(text, sight, *array, id);
  }
  if (const auto sweep = controller_.sweeps().summary_with_id(object)) {
    return append_sweep(text, sight, *sweep, id);
  }
  if (const auto schedule = controller_.schedules().with_id(object)) {
    append_schedule(text, sight, *schedule, id);
  }
}

void JobWatchStream::append_array(std::string& text, const Sight& sight, const job::Array& array,
                                  const std::string& id) const {
  if (!filter_.takes(array.spec.project, array.spec.name) || !sight.sees(array)) return;
  if (as_rows_) {
    return http::append_event(text, api::kRowEvent, record::to_json(row_for(array)), id);
  }
  http::append_event(text, api::kArrayEvent, api::array_to_json(sight.shown(array)), id);
}

void JobWatchStream::append_sweep(std::string& text, const Sight& sight,
                                  const sweep::SweepSummary& sweep, const std::string& id) const {
  if (!filter_.takes(sweep.project, sweep.name) || !sight.sees_project(sweep.project)) return;
  if (!as_rows_) {
    return http::append_event(text, api::kSweepEvent, record::to_json(sweep), id);
  }
  const auto whole = controller_.sweeps().with_id(sweep.id);
  if (whole) http::append_event(text, api::kRowEvent, record::to_json(row_for(*whole)), id);
}

void JobWatchStream::append_schedule(std::string& text, const Sight& sight,
                                     const job::Schedule& schedule, const std::string& id) const {
  const job::ScheduleSpec& spec = schedule.spec;
  if (!filter_.takes(spec.project, spec.name) || !sight.sees_project(spec.project)) return;
  if (as_rows_) {
    return http::append_event(text, api::kRowEvent, record::to_json(row_for(schedule)), id);
  }
  http::append_event(text, api::kScheduleEvent, api::schedule_to_json(schedule), id);
}

}  // namespace muster::server
