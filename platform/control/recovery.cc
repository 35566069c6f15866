// How a new server takes up what an earlier one left, at whatever point that one died.
//
// What was committed says how far a job had come; the engine says what of it is there. A launcher
// that was ever started is taken up and never started again; a gang that had not come so far starts
// anew, as another attempt with new keys.
#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "control/controller.h"
#include "control/live_gang.h"
#include "control/run.h"
#include "control/schedule_view.h"
#include "launch/elastic.h"

namespace muster::control {

using engine::Found;
using engine::StopMode;
using engine::TaskEnded;
using job::Job;
using job::Phase;
using job::Remark;
using job::Task;
using job::TaskPhase;

namespace {

/// Whether it was on its way into a gang that runs, and had not answered yet.
bool was_joining(const Job& job, const Task& task) {
  return job.phase == Phase::kRunning && task.phase != TaskPhase::kRunning &&
         task.role == job::Role::kWorker && launch::resizes_live(job.spec);
}

/// One that never ran, or whose end nobody saw: it is not missed.
void give_up_task(Task& task) {
  const bool was_started = task.started.has_value();
  if (!was_started) return unseat(task);
  task.left = true;
  task.phase = TaskPhase::kEnded;
}

}  // namespace

Result<void> Controller::recover() {
  MUSTER_TRY(store::Contents stored, parts_.store.load());
  MUSTER_CHECK(take_note_of_unreadable(stored));
  projects_.load(std::move(stored.projects), parts_.clock.now());
  cordoned_.insert(stored.cordoned_nodes.begin(), stored.cordoned_nodes.end());
  read_nodes();
  if (parts_.accounts != nullptr) {
    parts_.accounts->load(std::move(stored.users), std::move(stored.tokens),
                          std::move(stored.secrets));
  }
  // A job that cannot be read stands between the jobs that were submitted before and after it.
  std::multimap<size_t, const store::Unreadable*> unreadable;
  for (const store::Unreadable& record : stored.unreadable) {
    if (record.is_job()) unreadable.emplace(record.jobs_before, &record);
  }
  base::Time submitted = stored.jobs.empty() ? parts_.clock.now() : stored.jobs.front().submitted;
  const auto stand_in = [&](size_t jobs_before) {
    const auto [first, behind] = unreadable.equal_range(jobs_before);
    for (auto at = first; at != behind; ++at) stand_in_for(*at->second, submitted);
  };
  size_t taken = 0;
  for (Job& job : stored.jobs) {
    stand_in(taken++);
    submitted = job.submitted;
    last_stamp_ = std::max(last_stamp_, job.submitted);
    if (!job.events.empty()) last_stamp_ = std::max(last_stamp_, job.events.back().time);
    auto entry = std::make_unique<Entry>();
    entry->job = std::move(job);
    entry->sequence = next_sequence_++;
    admit(*entry);
    entries_[entry->sequence] = std::move(entry);
  }
  stand_in(taken);
  for (const auto& [sequence, entry] : entries_) {
    if (entry->job.unreadable) {
      hold_strays(*entry);
      continue;
    }
    if (entry->job.phase == Phase::kStarting || entry->job.phase == Phase::kRunning) {
      take_up(*entry);
    } else if (asks_a_cluster()) {
      take_up_room(*entry);
    } else if (entry->job.phase == Phase::kQueued && !entry->job.suspended) {
      scheduler_.submit(gang_of(*entry));
    }
  }
  set_retention(retention_);
  wake();
  return {};
}

/// One record must not keep the others from being served. A project is the exception: without its
/// record its quota is unknown, and jobs would start that the quota forbids.
Result<void> Controller::take_note_of_unreadable(const store::Contents& stored) {
  for (const store::Unreadable& record : stored.unreadable) {
    const std::string what = record.title() + " cannot be read: " + record.fault;
    const std::string advice = "restore a backup, or stop the server and run `" + record.command() +
                               "`, which sets the record aside";
    if (record.kind == "project") {
      return base::Error{
          .code = base::ErrorCode::kInternal,
          .what = what + "; its quota is unknown",
          .advice = advice + ", and then `muster project create` to give its jobs a quota again"};
    }
    base::log_error(what + "; the server starts without it; " + advice);
  }
  return {};
}

/// What is shown in the place of a job that cannot be read. Its name stays taken.
void Controller::stand_in_for(const store::Unreadable& record, base::Time submitted) {
  has_unreadable_jobs_ = true;
  const job::JobSpec spec{.name = record.name, .project = record.project};
  auto entry = std::make_unique<Entry>();
  entry->sequence = next_sequence_++;
  entry->job = {
      .id = record.id,
      .spec = spec,
      .reason = {Remark{"cannot be read: " + record.fault},
                 {Remark{"restore a backup, or stop the server (muster server --stop) and run `" +
                         record.command() + "`, which sets the record aside"}}},
      .suspended = true,
      .submitted = submitted,
      .unreadable = true,
      .tasks = job::tasks_of(spec)};
  if (by_id_.contains(record.id)) return;  // the id is what changed: another job has it
  admit(*entry);
  entries_[entry->sequence] = std::move(entry);
}

/// Its tasks that run keep running, and no other job gets their GPUs meanwhile. They count as their
/// project's, and are never evicted: what would become of the job, its record alone says.
void Controller::hold_strays(Entry& entry) {
  auto running = parts_.engine.running_tasks(entry.job.id);
  if (!running) {
    entry.job.reason.details.emplace_back(
        Remark{"its tasks, where some still run, keep running; the engine cannot tell which these "
               "are, and Muster neither counts nor ends them"});
    return;
  }
  entry.strays = *std::move(running);
  schedule::Gang gang{.id = entry.job.id,
                      .name = entry.job.spec.name,
                      .project = entry.job.spec.project,
                      .preemptible = false,
                      .sequence = entry.sequence,
                      .pools = pools_,
                      .submitted = forward_.of(entry.job.submitted)};
  Places places;
  for (const engine::RunningTask& stray : entry.strays) {
    [[maybe_unused]] const auto found = parts_.engine.adopt(stray.gang, stray.task);
    const bool is_part = stray.gpu_share_milli > 0 && stray.gpu_share_milli < schedule::kWholeGpu;
    gang.groups.push_back({.claim = {.gpus = is_part ? 0 : static_cast<int>(stray.devices.size()),
                                     .gpu_share_milli = is_part ? stray.gpu_share_milli : 0}});
    places.emplace_back(schedule::TaskPlace{
        .node = stray.node, .devices = stray.devices, .share_milli = stray.gpu_share_milli});
  }
  if (!entry.strays.empty()) scheduler_.adopt(std::move(gang), places, forward_.now());
  show_strays(entry);
}

void Controller::show_strays(Entry& entry) {
  std::vector<job::Detail>& details = entry.job.reason.details;
  details.resize(1);
  if (entry.strays.empty()) {
    details.emplace_back(Remark{"none of its tasks runs"});
    return;
  }
  std::vector<std::string> names;
  for (const engine::RunningTask& stray : entry.strays) names.push_back(stray.task);
  details.emplace_back(
      Remark{"these tasks of it still run, and keep their GPUs: " + base::joined(names) +
             "; muster stop " + entry.job.spec.name + " ends them"});
}

void Controller::stray_reported(Entry& entry, const engine::TaskReport& report) {
  if (!std::holds_alternative<TaskEnded>(report.what)) return;
  std::vector<engine::RunningTask>& strays = entry.strays;
  const auto is_it = [&](const engine::RunningTask& stray) {
    return stray.gang == report.gang && stray.task == report.task;
  };
  if (std::erase_if(strays, is_it) == 0) return;
  show_strays(entry);
  tell(entry.job);
  // What outlives a task must go once nothing of its gang runs. And the scheduler would have a gang
  // that lost one task wait for the others.
  if (!strays.empty()) return;
  parts_.engine.scrub(report.gang);
  scheduler_.ended(entry.job.id);
  wake();
}

Result<Job> Controller::stop_strays(Entry& entry, bool now, const access::Actor& by) {
  const job::JobSpec& spec = entry.job.spec;
  MUSTER_CHECK(journal_.flush({.audit = record(by, "job.stop", spec.name, spec.project,
                                               {{.field = "stop_requested", .after = "true"}})}));
  for (const engine::RunningTask& stray : entry.strays) {
    parts_.engine.stop(stray.gang, {stray.task}, now ? StopMode::kNow : StopMode::kGraceful);
  }
  return entry.job;
}

void Controller::take_up(Entry& entry) {
  Job& job = entry.job;
  entry.run = std::make_unique<Run>();
  Run& run = *entry.run;
  note(job, job::Notice{job::Notice::What::kTakenUp});
  for (Task& task : job.tasks) take_up_task(entry, task);
  if (launch::resizes_live(job.spec)) {
    if (!asks_a_cluster()) find_seed(job, run);
    if (!run.can_grow) close_up_seats(job);
  }
  const schedule::Gang gang = gang_of(entry);
  auto places = places_of(job);
  places.resize(static_cast<size_t>(schedule::task_count(gang)));
  // A clock that was set back meanwhile must not make it look as if it were yet to start.
  const base::Time now = forward_.now();
  scheduler_.adopt(gang, places, std::min(job.started.value_or(now), now));
  job.failure.reset();  // found again with what had ended, and with it who is at fault
  if (job.eviction) {
    run.taken_up_evicted = run.goes_whole = true;
    ++evictions_from_before_;
  }
  if (begins_anew(entry)) {
    run.placed = parts_.clock.now();
    change(entry);
    return journal_.once_committed([this, id = job.id, attempt = job.attempt] {
      if (Entry* const late = run_of(id, attempt)) begin(*late);
    });
  }
  const Task& deciding = job::deciding_task(job);
  if (deciding.phase == TaskPhase::kPending) {
    // The keys and the plan of the launcher died with the server: a new attempt makes new ones.
    run.requeue = job::AttemptAbandoned{.why = job::AttemptAbandoned::Why::kServerRestarted};
    end_gang(entry, StopMode::kNow);
    return soon([this, id = job.id, attempt = job.attempt] {
      if (Entry* const late = run_of(id, attempt)) finish_if_over(*late);
    });
  }
  if (job.phase == Phase::kStarting) {
    job.phase = Phase::kRunning;
    job.started = deciding.started;
    job.reason = job.eviction ? job::Fact(job::Evicted{.why = *job.eviction}) : running_reason(job);
  }
  learn_mpi(entry);
  ranks_changed(entry);
  change(entry);
  limit_run_time(entry);
  if (job.stop_requested || job.eviction) end_gang_gently(entry);
  take_up_live(entry);
  // Of what had ended before, nobody reports again; the server that knew may not have got further.
  for (const Task& task : job.tasks) {
    if (task.phase != TaskPhase::kEnded || !task.exit || task.left) continue;
    soon([this, id = job.id, attempt = job.attempt, name = task.name] {
      Entry* const late = run_of(id, attempt);
      if (late == nullptr) return;
      react_to_end(*late, *find_task(late->job, name));
    });
  }
}

/// Nothing of it was ever started. A room that it has waited for is not given away for that; that
/// of another engine is there a moment later, too.
bool Controller::begins_anew(const Entry& entry) const {
  const Job& job = entry.job;
  if (!asks_a_cluster() || job.phase != Phase::kStarting) return false;
  return !job.stop_requested && !job.eviction &&
         std::all_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
           return task.phase == TaskPhase::kPending && !task.started;
         });
}

void Controller::take_up_task(Entry& entry, Task& task) {
  Job& job = entry.job;
  // A task of an elastic gang that had no place never was.
  if (task.phase == TaskPhase::kEnded || task.node.empty()) return;
  switch (parts_.engine.adopt(engine_gang(job), task.name)) {
    case Found::kRunning:
    case Found::kEnded:
      task.phase = TaskPhase::kRunning;
      if (!task.started) task.started = parts_.clock.now();
      // The room that it leaves is for somebody whom only the server before this one knew.
      if (task.left && entry.run->leaving_from_before.empty()) ++evictions_from_before_;
      if (task.left) entry.run->leaving_from_before.insert(task.name);
      return;
    case Found::kNothing:
      if (task.left || was_joining(job, task)) return give_up_task(task);
      if (job.phase == Phase::kStarting) {
        task.phase = TaskPhase::kPending;
        return;
      }
      task.phase = TaskPhase::kRunning;
      soon([this, gang = engine_gang(job), name = task.name] {
        hear({.gang = gang,
              .task = name,
              .what = TaskEnded{.status = {.lost = true}, .time = parts_.clock.now()}});
      });
  }
}

}  // namespace muster::control
