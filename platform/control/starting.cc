// From a placed gang to one that runs: its workers, then its launcher.
#include <algorithm>

#include "control/controller.h"
#include "control/failure.h"
#include "control/run.h"
#include "control/schedule_view.h"
#include "job/units.h"

namespace muster::control {

using base::ErrorCode;
using engine::StopMode;
using job::Job;
using job::Phase;
using job::Task;
using job::TaskPhase;

namespace {

// An address or port that another process holds is our own bad luck, not the user's fault.
constexpr int kStartAttempts = 3;

std::vector<std::string> gpu_names(const engine::Node& node) {
  if (!node.gpu_names.empty()) return node.gpu_names;
  std::vector<std::string> numbers;
  for (int i = 0; i < node.gpus; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

/// The values of the secrets that a job uses. They were there when it was submitted; since then
/// they may have been removed, or the server started with another key.
Result<std::map<std::string, std::string>> secrets_of(const Job& job, const Accounts* accounts) {
  std::map<std::string, std::string> values;
  if (accounts == nullptr) return values;
  for (const job::SecretUse& use : job.spec.secrets) {
    MUSTER_TRY(values[use.name], accounts->open_secret(job.spec.project, use.name));
  }
  return values;
}

}  // namespace

launch::Site Controller::site_of(const Job& job) const {
  return {.sshd = site_.sshd,
          .user = site_.user,
          .rank_agent = site_.rank_agent,
          .generated_folder =
              [this, &job](std::string_view task) {
                return parts_.engine.generated_folder(engine_gang(job), task, job.spec.sandbox);
              },
          .gpus_of =
              [this](const std::string& name) {
                const engine::Node* const node = node_named(name);
                return node ? gpu_names(*node) : std::vector<std::string>();
              },
          .images = site_.images};
}

Result<launch::GangPlan> Controller::plan_of(const Job& job) {
  launch::Site site = site_of(job);
  MUSTER_TRY(site.secrets, secrets_of(job, parts_.accounts));
  return launch::plan_gang(job, launch::make_seed(parts_.random), site);
}

/// Of an image that is not run, whoever wonders at what the tasks find is told; once.
void Controller::tell_what_stands_in(Job& job) {
  if (job.spec.image.empty() || job.attempt > 1 || parts_.engine.runs_images()) return;
  const job::ImageStandIn* const image = job::find_stand_in(site_.images, job.spec.image);
  const bool has_stand_in = image != nullptr && !image->command.empty() && job.spec.command.empty();
  note(job, "this engine runs no images: instead of '" + job.spec.image + "' its tasks see the " +
                "machine's own files" + (has_stand_in ? " and run what stands in for it" : ""));
}

void Controller::begin(Entry& entry) {
  Job& job = entry.job;
  Run& run = *entry.run;
  // Stopped or evicted before it was begun.
  if (run.ending || job.stop_requested || job.eviction) return finish_if_over(entry);
  if (!has_room_for(places_of(job))) {
    run.requeue = "its node has changed; it starts again elsewhere";
    return finish_if_over(entry);
  }
  auto plan = plan_of(job);
  if (!plan) {
    fail(entry, {.cause = plan.error().what, .advice = plan.error().advice});
    return finish_if_over(entry);
  }
  run.plan = *std::move(plan);
  tell_what_stands_in(job);
  for (const launch::TaskPlan& task : run.plan.first) run.unanswered.insert(task.task);
  if (run.plan.first.empty()) return start_stage(entry, std::exchange(run.plan.then, {}));
  start_stage(entry, std::exchange(run.plan.first, {}));
}

void Controller::start_stage(Entry& entry, std::vector<launch::TaskPlan> tasks) {
  Job& job = entry.job;
  entry.run->stage_under_way = true;
  for (const launch::TaskPlan& plan : tasks) {
    Task& task = *find_task(job, plan.task);
    task.phase = TaskPhase::kStarting;
    task.started = parts_.clock.now();
  }
  parts_.engine.start(engine_gang(job), std::move(tasks),
                      [this, alive = std::weak_ptr<bool>(alive_), id = job.id,
                       attempt = job.attempt](const Result<void>& started) {
                        if (!alive.expired()) stage_started(id, attempt, started);
                      });
}

void Controller::stage_started(const std::string& id, int attempt, const Result<void>& started) {
  Entry* const entry = by_id(id);
  if (entry == nullptr || entry->job.attempt != attempt || !entry->run) return;
  Job& job = entry->job;
  Run& run = *entry->run;
  run.stage_under_way = false;
  if (!started) ++metrics_.engine_errors;
  if (started) {
    // A stop that came while the engine was at it.
    if (run.ending) parts_.engine.stop(engine_gang(job), live_tasks(job), StopMode::kNow);
    // From here: what it took to bring the job's files there is not the workers' fault.
    if (!run.unanswered.empty()) {
      run.start_timer = parts_.loop.after(job.spec.start_timeout,
                                          [this, id, attempt] { start_timed_out(id, attempt); });
    }
    return finish_if_over(*entry);  // all of it may have been lost meanwhile
  }
  for (Task& task : job.tasks) {
    const bool of_this_stage =
        task.phase == TaskPhase::kStarting && leads(job, task) == run.plan.then.empty();
    if (of_this_stage) task.phase = TaskPhase::kPending;
  }
  if (started.error().code == ErrorCode::kConflict && job.attempt - job.restarts < kStartAttempts) {
    run.requeue = started.error().what + "; it starts again on other addresses";
  } else if (!job.stop_requested && !job.eviction) {
    fail(*entry, {.cause = started.error().what, .advice = started.error().advice});
  }
  end_gang(*entry, StopMode::kNow);
  finish_if_over(*entry);
}

/// The leader starts with the last of those that it waits for. One that ran to its end so quickly
/// that nobody heard of it before was up, too.
void Controller::is_up(Entry& entry, const Task& task) {
  Job& job = entry.job;
  Run& run = *entry.run;
  const bool was_awaited = run.unanswered.erase(task.name) > 0;
  if (!was_awaited || !run.unanswered.empty() || run.ending || job.eviction) return change(entry);
  run.start_timer.reset();
  note(job, "every worker answers; the " + job::deciding_task(job).name + " starts");
  change(entry);
  start_stage(entry, std::exchange(run.plan.then, {}));
}

void Controller::answered(Entry& entry, Task& task) {
  Job& job = entry.job;
  Run& run = *entry.run;
  task.phase = TaskPhase::kRunning;
  if (!leads(job, task)) {
    return is_up(entry, task);
  }
  if (job.phase == Phase::kRunning) return;  // taken up
  job.phase = Phase::kRunning;
  job.started = parts_.clock.now();
  measure_start(entry);
  if (!run.ending) job.reason = "runs";
  note(job, "running");
  change(entry);
  limit_run_time(entry);
}

void Controller::measure_start(const Entry& entry) {
  const Job& job = entry.job;
  const auto since = [&](base::Time begin) {
    return std::chrono::duration<double>(*job.started - begin).count();
  };
  metrics_.start_seconds.add(since(entry.run->placed));
  if (job.restarts == 0) metrics_.wait_seconds.add(since(job.submitted));
}

void Controller::limit_run_time(Entry& entry) {
  const Job& job = entry.job;
  const auto& limit = job.spec.scheduling.time_limit;
  if (!limit || !job.started) return;
  const std::chrono::nanoseconds ran = parts_.clock.now() - *job.started;
  const std::chrono::nanoseconds left =
      std::clamp<std::chrono::nanoseconds>(*limit - ran, std::chrono::nanoseconds(0), *limit);
  entry.run->limit_timer =
      parts_.loop.after(left, [this, id = job.id, attempt = job.attempt, limit = *limit] {
        Entry* const late = by_id(id);
        if (late == nullptr || !late->run || late->job.attempt != attempt) return;
        if (late->run->ending) return;
        fail(*late, {.task = job::deciding_task(late->job).name,
                     .cause = "ran longer than its time limit of " + job::format_duration(limit),
                     .advice = "give it a longer --time-limit, or checkpoints to go on from"});
        end_gang_gently(*late);
      });
}

void Controller::start_timed_out(const std::string& id, int attempt) {
  Entry* const entry = by_id(id);
  if (entry == nullptr || entry->job.attempt != attempt || !entry->run) return;
  Job& job = entry->job;
  const std::set<std::string>& silent = entry->run->unanswered;
  if (silent.empty() || job.eviction) return;
  const Task& task = *find_task(job, *silent.begin());
  std::string cause = task.name + " did not answer on its ssh port within " +
                      job::format_duration(job.spec.start_timeout);
  if (silent.size() > 1) {
    cause += " (nor did " + std::to_string(silent.size() - 1) + " more)";
  }
  entry->run->culprit = task;
  entry->run->culprit_lines = last_lines(parts_.engine, engine_gang(job), task);
  fail(*entry,
       {.task = task.name,
        .cause = std::move(cause),
        .advice = "the lines above are what its sshd said; a busy machine may need a longer "
                  "--start-timeout",
        .last_lines = entry->run->culprit_lines});
  end_gang(*entry, StopMode::kNow);
}

}  // namespace muster::control
