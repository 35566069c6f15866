#include "server/event_watch.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"

namespace muster::server {

using job::Job;

namespace {

constexpr size_t kHorizonChangesAtOnce = 256;

}  // namespace

EventHorizon::EventHorizon(control::Controller& controller)
    : controller_(controller), feed_watch_(controller.feed().watch([this] {
        if (is_computed_) look_at_changes();
      })) {}

base::Time EventHorizon::time() {
  if (!is_computed_) look_at_all();
  return time_;
}

void EventHorizon::look_at_all() {
  is_computed_ = true;
  at_ = controller_.feed().now();
  controller_.jobs().each_job(false, std::nullopt, [this](const job::JobFacts& job) {
    time_ = std::max(time_, job.last_event());
    return true;
  });
}

void EventHorizon::look_at_changes() {
  while (true) {
    const auto changes = controller_.feed().after(at_, kHorizonChangesAtOnce);
    if (!changes) return look_at_all();
    for (const auto& change : *changes) {
      at_.number = change.number;
      const auto job = controller_.jobs().facts_with_id(change.job);
      if (job) time_ = std::max(time_, job->last_event());
    }
    if (changes->size() < kHorizonChangesAtOnce) return;
  }
}

namespace {

constexpr size_t kMostEvents = 500;      // at a time
constexpr size_t kUnpackedAtOnce = 256;  // jobs in one turn of the loop
constexpr size_t kEventChangesAtOnce = 200;

api::JobEvent event_of(const Job& job, const job::Event& event) {
  return {.time = event.time,
          .job = job.spec.name,
          .project = job.spec.project,
          .job_id = job.id,
          .what = event.what};
}

bool is_earlier(const api::JobEvent& left, const api::JobEvent& right) {
  return left.time < right.time;
}

std::string_view kind_of_fact(const job::Fact& fact) {
  return std::visit([](const auto& each) { return each.kKind; }, fact);
}

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
      feed_watch_(controller.feed().watch([this] { wake(); })) {
  if (start_.after) return;
  caught_up_ = true;
  at_ = horizon_->position();
}

std::optional<http::BodyPiece> EventWatchStream::next() {
  if (ended_) return http::BodyPiece(std::nullopt);
  std::string text;
  // A client that has seen no event yet also needs an id from which it can continue.
  if (!start_.after && append_ready(text)) return http::BodyPiece(std::move(text));
  const Sight sight(controller_, who_);
  const base::Time horizon = horizon_->time();
  while (scan_ || last_ < horizon) {
    std::vector<api::JobEvent> found;
    if (!find_some(sight, horizon, found)) {
      wake();
      return std::nullopt;
    }
    for (api::JobEvent& event : found) {
      event.what = sight.redacted(std::move(event.what));
      http::append_event(text, api::kHistoryEvent, api::job_event_to_json(event),
                         std::to_string(event.time.time_since_epoch().count()));
    }
    // On a busy server, the horizon may recede for a long time.
    if (caught_up_) append_ready(text);
    if (!text.empty()) return http::BodyPiece(std::move(text));
  }
  if (append_ready(text)) return http::BodyPiece(std::move(text));
  return end_if_over(sight);
}

/// Once in the life of the stream. False: it was sent before.
bool EventWatchStream::append_ready(std::string& text) {
  if (std::exchange(is_ready_, true)) return false;
  http::append_event(text, api::kReadyEvent, "{}",
                     std::to_string(last_.time_since_epoch().count()));
  return true;
}

/// The first events after last_, at most kMostEvents; last_ becomes the time up to which there are
/// no others. False: the search continues in a later turn of the loop.
bool EventWatchStream::find_some(const Sight& sight, base::Time horizon,
                                 std::vector<api::JobEvent>& found) {
  if (!scan_ && (!caught_up_ || !find_in_changed(sight, horizon, found))) {
    found.clear();
    scan_ = Scan{.horizon = horizon, .began = controller_.feed().now()};
    ++scans_;
  }
  if (scan_) {
    if (!scan_some(sight)) return false;
    at_ = scan_->began;
    horizon = scan_->horizon;
    found = std::move(scan_->first);
    caught_up_ = found.size() < kMostEvents;
    scan_.reset();
  }
  std::sort(found.begin(), found.end(), is_earlier);
  last_ = found.size() < kMostEvents ? horizon : found.back().time;
  return true;
}

/// False: there are more jobs to examine.
bool EventWatchStream::scan_some(const Sight& sight) {
  std::vector<api::JobEvent>& first = scan_->first;
  size_t unpacked = 0;
  bool is_over = true;
  controller_.jobs().each_job(false, scan_->examined, [&](const job::JobFacts& job) {
    // Of a million jobs, only those are unpacked whose events may be among the first.
    if (is_too_late(first, job) || !may_have_events(sight, job)) return true;
    is_over = job.packed == nullptr || unpacked++ < kUnpackedAtOnce;
    if (!is_over) return false;
    scan_->examined = job.submitted;
    add_first(job.id, scan_->horizon, first);
    return true;
  });
  return is_over;
}

bool EventWatchStream::is_too_late(const std::vector<api::JobEvent>& first,
                                   const job::JobFacts& job) {
  return first.size() == kMostEvents && job.first_event() > first.front().time;
}

/// Adds the job's events after last_ that are among the first kMostEvents. `first` is a heap with
/// the latest on top.
void EventWatchStream::add_first(std::string_view id, base::Time horizon,
                                 std::vector<api::JobEvent>& first) const {
  find_in(id, horizon, [&](const Job& whole, const job::Event& event) {
    if (first.size() == kMostEvents) {
      if (event.time >= first.front().time) return false;
      std::pop_heap(first.begin(), first.end(), is_earlier);
      first.pop_back();
    }
    first.push_back(event_of(whole, event));
    std::push_heap(first.begin(), first.end(), is_earlier);
    return true;
  });
}

/// The first events after last_ of the jobs that have changed, as a heap. Where there are more, the
/// same changes are read again for the others. False: the changes are unknown, or too many of the
/// jobs are packed.
bool EventWatchStream::find_in_changed(const Sight& sight, base::Time horizon,
                                       std::vector<api::JobEvent>& found) {
  control::FeedPosition at = at_;
  size_t unpacked = 0;
  while (true) {
    const auto changes = controller_.feed().after(at, kEventChangesAtOnce);
    if (!changes) return false;
    for (const auto& change : *changes) {
      at.number = change.number;
      const auto job = controller_.jobs().facts_with_id(change.job);
      if (!job || is_too_late(found, *job) || !may_have_events(sight, *job)) continue;
      if (job->packed != nullptr && ++unpacked > kUnpackedAtOnce) return false;
      add_first(change.job, horizon, found);
    }
    if (changes->size() < kEventChangesAtOnce) break;
  }
  if (found.size() < kMostEvents) at_ = at;
  return true;
}

/// Whether the caller may get later events of the job.
bool EventWatchStream::may_have_events(const Sight& sight, const job::JobFacts& job) const {
  if (job.last_event() <= last_) return false;
  if (start_.job ? job.id != *start_.job : !start_.filter.takes(job.project, job.name)) {
    return false;
  }
  return sight.sees(job);
}

/// Calls `take` with the job's later events, in the order of time, until it returns false.
void EventWatchStream::find_in(std::string_view id, base::Time horizon, const Take& take) const {
  controller_.jobs().visit_whole(id, [&](const Job& job) {
    for (const job::Event& event : job.events) {
      if (event.time <= last_ || event.time > horizon) continue;
      if (!start_.kind.empty() && kind_of_fact(event.what) != start_.kind) continue;
      if (!take(job, event)) return;
    }
  });
}

std::optional<http::BodyPiece> EventWatchStream::end_if_over(const Sight& sight) {
  if (!start_.job) return std::nullopt;
  const Job* const job = controller_.jobs().with_id(*start_.job);
  if (job == nullptr || !sight.sees(*job)) return http::BodyPiece(std::nullopt);
  const bool all_sent = job->events.empty() || job->events.back().time <= last_;
  if (!job::is_final(job->phase) || !all_sent) return std::nullopt;
  ended_ = true;
  std::string text;
  http::append_event(text, api::kEndEvent, api::job_to_json(sight.redacted(*job)));
  return http::BodyPiece(std::move(text));
}

}  // namespace muster::server
