#include "server/job_watch.h"

#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/fields.h"
#include "api/routes.h"
#include "api/schedule_wire.h"
#include "api/wire.h"
#include "http/server_sent_events.h"
#include "server/listed_objects.h"

namespace muster::server {

using control::ChangeFeed;
using control::FeedPosition;
using job::Job;

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
  controller_.jobs().each_job(false, listed_, [&](const job::JobFacts& job) {
    listed_ = job.submitted;
    if (filter_.takes(sight, job)) {
      append_job(text, sight, *controller_.jobs().with_id(std::string(job.id)), "");
    }
    all = text.size() < kPieceBytes;
    return all;
  });
  if (!all) return;
  const auto arrays = controller_.arrays().ids_of([&](const control::ArrayFacts& array) {
    return !filter_.project || array.record.spec.project == *filter_.project;
  });
  for (const std::string& array : arrays) append_object(text, sight, array, "");
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
    if (!filter_.takes(change.project, change.name) || !sight.saw(change)) return;
    return http::append_event(
        text, api::kRemovedEvent,
        api::removed_job_to_json(
            {.id = change.job, .name = change.name, .project = change.project}),
        id);
  }
  // A job that was removed meanwhile is reported by a later change.
  const Job* const job = controller_.jobs().with_id(change.job);
  if (job != nullptr) {
    if (filter_.takes(sight, job::facts_of(*job))) append_job(text, sight, *job, id);
  } else {
    append_object(text, sight, change.job, id);
  }
}

void JobWatchStream::append_object(std::string& text, const Sight& sight, const std::string& object,
                                   const std::string& id) const {
  if (const auto array = controller_.arrays().facts_with_id(object)) {
    return append_array(text, sight, *array, id);
  }
  if (const auto sweep = controller_.sweeps().summary_with_id(object)) {
    return append_sweep(text, sight, *sweep, id);
  }
  if (const auto schedule = controller_.schedules().with_id(object)) {
    append_schedule(text, sight, *schedule, id);
  }
}

void JobWatchStream::append_array(std::string& text, const Sight& sight,
                                  const control::ArrayFacts& array, const std::string& id) const {
  const job::JobSpec& spec = array.record.spec;
  if (!filter_.takes(spec.project, spec.name) || !sight.sees(array)) return;
  if (as_rows_) {
    return http::append_event(text, api::kRowEvent, record::to_json(row_for(array)), id);
  }
  auto whole = controller_.arrays().with_id(array.record.id);
  if (!whole) return;
  http::append_event(text, api::kArrayEvent, api::array_to_json(sight.shown(*std::move(whole))),
                     id);
}

void JobWatchStream::append_sweep(std::string& text, const Sight& sight,
                                  const sweep::SweepSummary& sweep, const std::string& id) const {
  if (!filter_.takes(sweep.project, sweep.name) || !sight.sees(sweep)) return;
  if (!as_rows_) {
    return http::append_event(text, api::kSweepEvent, record::to_json(sweep), id);
  }
  const sweep::SweepRecord* const record = controller_.sweeps().record_with_id(sweep.id);
  if (record == nullptr) return;
  http::append_event(text, api::kRowEvent, record::to_json(row_for(*record, sweep)), id);
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
