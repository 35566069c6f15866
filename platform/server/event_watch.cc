#include "server/event_watch.h"

#include <algorithm>
#include <utility>

#include "api/event_wire.h"
#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"

namespace muster::server {

using job::Job;

namespace {

constexpr size_t kMostEvents = 500;  // at a time
constexpr size_t kEventChangesAtOnce = 200;

}  // namespace

EventWatch::EventWatch(StreamLife life, control::Controller& controller,
                       std::shared_ptr<EventHorizon> horizon, access::Identity who, Start start)
    : EventStream(std::move(life)),
      controller_(controller),
      horizon_(std::move(horizon)),
      who_(std::move(who)),
      start_(std::move(start)),
      last_(start_.after.value_or(horizon_->time())),
      told_where_(start_.after.has_value()),
      feed_watch_(controller.feed().watch([this] { wake(); })) {}

std::optional<http::BodyPiece> EventWatch::next() {
  if (ended_) return http::BodyPiece(std::nullopt);
  // A client that has seen no event yet must know, too, where to go on.
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

/// The first of what comes after last_, at most kMostEvents.
std::vector<EventWatch::Found> EventWatch::find_some(const Sight& sight, base::Time horizon) {
  std::vector<Found> found;
  if (!caught_up_ || !find_in_changed(sight, horizon, found)) {
    found = find_in_all(sight, horizon);
  }
  std::sort(found.begin(), found.end(),
            [](const Found& left, const Found& right) { return left.time < right.time; });
  return found;
}

std::vector<EventWatch::Found> EventWatch::find_in_all(const Sight& sight, base::Time horizon) {
  // Of all that come after, a heap of the first few, with the last of these on top.
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

/// False where there are too many, or it is not known what changed.
bool EventWatch::find_in_changed(const Sight& sight, base::Time horizon,
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

void EventWatch::find_in(const Sight& sight, const Job& job, base::Time horizon,
                         std::vector<Found>& found) const {
  if (job.events.empty() || job.events.back().time <= last_) return;
  if (start_.job ? job.id != *start_.job : !start_.filter.takes(job.spec.project, job.spec.name)) {
    return;
  }
  if (!sight.sees(job)) return;
  for (const job::Event& event : job.events) {
    if (event.time > last_ && event.time <= horizon) found.push_back({event.time, &job, &event});
  }
}

std::optional<http::BodyPiece> EventWatch::end_if_over(const Sight& sight) {
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

}  // namespace muster::server
