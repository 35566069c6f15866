#include "server/listed_objects.h"

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/sweeps.h"
#include "job/validate.h"

namespace muster::server {

api::JobRow row_for(const control::Controller& controller, const Sight& sight,
                    const job::Job& job) {
  // Only the fields that can name other projects are redacted.
  job::Job shown;
  shown.spec.project = job.spec.project;
  shown.phase = job.phase;
  shown.reason = job.reason;
  shown.failure = job.failure;
  shown = sight.redacted(std::move(shown));
  api::JobRow row = api::row_of(job);
  row.reason = api::row_of(shown).reason;
  if (!job::is_final(job.phase)) row.progress = controller.progress_of(job);
  return row;
}

size_t parts_of_jobs(const control::Controller& controller) {
  constexpr size_t kMostThreads = 8;
  const size_t cpus = std::thread::hardware_concurrency();
  return std::clamp<size_t>(controller.jobs().size() / kJobsOfThread, 1,
                            std::clamp<size_t>(cpus, 1, kMostThreads));
}

void examine_parts(size_t parts, const std::function<void(size_t part)>& examine) {
  std::vector<std::thread> threads;
  for (size_t part = 1; part < parts; ++part) {
    try {
      threads.emplace_back(examine, part);
    } catch (const std::system_error&) {  // the account may have no more threads
      examine(part);
    }
  }
  examine(0);
  for (std::thread& thread : threads) thread.join();
}

bool leave_off_what_is_too_much(std::vector<const job::Job*>& jobs) {
  constexpr size_t kMostBytes = 4 << 20;  // approximately
  size_t size = 0;
  size_t count = 0;
  while (count < jobs.size() &&
         (count == 0 || size + job::text_size(jobs[count]->spec) <= kMostBytes)) {
    size += job::text_size(jobs[count++]->spec);
  }
  const bool too_much = count < jobs.size();
  jobs.resize(count);
  return too_much;
}

namespace {

std::string reason_of(const sweep::SweepSummary& sweep) {
  const std::string of = sweep.metric + " of " + std::to_string(sweep.trials) + " trials";
  if (sweep.end == sweep::SweepEnd::kNoMetric) return "no trial reported " + sweep.metric;
  if (sweep.end == sweep::SweepEnd::kFailures) return "too many trials failed";
  const std::string start = sweep.phase == sweep::SweepPhase::kPaused ? "paused; " : "";
  if (!sweep.best_trial) return start + "no value of " + of + " yet";
  return start + "best " + of + ": " + sweep::trial_name(sweep.name, *sweep.best_trial);
}

}  // namespace

api::JobRow row_for(const sweep::SweepRecord& record, const sweep::SweepSummary& sweep) {
  const job::JobSpec& spec = record.spec.job;
  api::JobRow row{.object = api::JobRow::Object::kSweep,
                  .id = sweep.id,
                  .name = sweep.name,
                  .project = sweep.project,
                  .owner = sweep.owner,
                  .kind = spec.kind,
                  .phase = sweep::job_phase(sweep.phase)};
  row.reason = reason_of(sweep);
  row.gpu_milli = api::gpu_milli_of(spec);
  row.priority = job::priority_of(spec.scheduling);
  row.members = api::MemberCounts{.all = sweep.trials,
                                  .waiting = sweep.trials - sweep.started + sweep.paused,
                                  .running = sweep.active,
                                  .succeeded = sweep.completed,
                                  .failed = sweep.failed,
                                  .stopped = sweep.stopped};
  row.labels = spec.labels;
  row.submitted = sweep.created;
  row.started = sweep.created;
  row.ended = sweep.ended;
  return row;
}

api::JobRow row_for(const control::ArrayFacts& array) {
  const job::JobSpec& spec = array.record.spec;
  const job::MemberCounts& counts = array.counts;
  const int running = counts.starting + counts.running;
  std::string reason;
  if (array.state.too_many_failures) {
    reason = "more members failed than max_failures allows";
  } else if (array.state.suspended && !array.ended) {
    reason = "is suspended";
  } else if (counts.failed > 0) {
    reason =
        std::to_string(counts.failed) + (counts.failed == 1 ? " member" : " members") + " failed";
  }
  return {.object = api::JobRow::Object::kArray,
          .id = array.record.id,
          .name = spec.name,
          .project = spec.project,
          .owner = array.record.owner,
          .kind = spec.kind,
          .phase = array.phase(),
          .reason = std::move(reason),
          .gpu_milli = api::gpu_milli_of(spec),
          .priority = job::priority_of(spec.scheduling),
          .tasks = counts.all(),
          .tasks_running = running,
          .members = api::MemberCounts{.all = counts.all(),
                                       .waiting = counts.queued,
                                       .running = running,
                                       .succeeded = counts.succeeded,
                                       .failed = counts.failed,
                                       .stopped = counts.stopped},
          .labels = spec.labels,
          .submitted = array.record.submitted,
          .ended = array.ended,
          .suspended = array.state.suspended,
          .stop_requested = array.state.stop_requested};
}

/// A schedule waits for its next run.
api::JobRow row_for(const job::Schedule& schedule) {
  const job::JobSpec& spec = schedule.spec.job;
  api::JobRow row{.object = api::JobRow::Object::kSchedule,
                  .id = schedule.id,
                  .name = schedule.spec.name,
                  .project = schedule.spec.project,
                  .owner = schedule.owner,
                  .kind = spec.kind,
                  .gpu_milli = api::gpu_milli_of(spec),
                  .priority = job::priority_of(spec.scheduling),
                  .labels = spec.labels,
                  .submitted = schedule.created,
                  .suspended = schedule.paused};
  const std::string times = "(" + schedule.spec.cron + ", " + schedule.spec.timezone + ")";
  if (!schedule.problem.empty()) {
    row.reason = "cannot run " + times + ": " + schedule.problem;
  } else if (schedule.paused) {
    row.reason =
        "paused " + times + "; muster schedule resume " + schedule.spec.name + " continues it";
  } else if (!schedule.upcoming.empty()) {
    row.may_start = schedule.upcoming.front();
    row.reason = "next run at " + base::to_rfc3339(schedule.upcoming.front(), 0) + " " + times;
  }
  return row;
}

namespace {

ListedObject listed_sweep(const sweep::SweepRecord& record, const sweep::SweepSummary& summary) {
  ListedObject object{.listed = job::facts_of(record.spec.job),
                      .row = [&record, summary] { return row_for(record, summary); }};
  object.listed.id = record.id;
  object.listed.owner = record.owner;
  object.listed.phase = sweep::job_phase(summary.phase);
  object.listed.submitted = record.created;
  object.listed.started = record.created;
  object.listed.ended = summary.ended;
  return object;
}

ListedObject listed_array(const control::ArrayFacts& array) {
  ListedObject object{.listed = job::facts_of(array.record.spec),
                      .row = [array] { return row_for(array); }};
  object.listed.id = array.record.id;
  object.listed.owner = array.record.owner;
  object.listed.phase = array.phase();
  object.listed.submitted = array.record.submitted;
  object.listed.ended = array.ended;
  return object;
}

}  // namespace

void each_listed_object(const control::Controller& controller, const Sight& sight,
                        const std::function<void(const ListedObject&)>& visit) {
  controller.sweeps().each(
      [&](const sweep::SweepRecord& record, const sweep::SweepSummary& summary) {
        if (sight.sees(summary)) visit(listed_sweep(record, summary));
        return true;
      });
  controller.arrays().each([&](const control::ArrayFacts& array) {
    if (sight.sees(array)) visit(listed_array(array));
    return true;
  });
  for (const job::Schedule& schedule : controller.schedules().list(std::nullopt)) {
    if (!sight.sees_project(schedule.spec.project)) continue;
    ListedObject object{.listed = job::facts_of(schedule.spec.job),
                        .row = [&schedule] { return row_for(schedule); }};
    object.listed.id = schedule.id;
    object.listed.owner = schedule.owner;
    object.listed.submitted = schedule.created;
    object.listed.has_phase = false;
    visit(object);
  }
}

}  // namespace muster::server
