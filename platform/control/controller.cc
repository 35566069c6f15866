#include "control/controller.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "control/failure.h"
#include "control/log_follower.h"
#include "control/run.h"
#include "job/units.h"
#include "job/validate.h"
#include "schedule/plan.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using engine::StopMode;
using engine::TaskEnded;
using job::Job;
using job::Phase;
using job::Role;
using job::Task;
using job::TaskPhase;

namespace {

// An address or port that another process holds is our own bad luck, not the user's fault.
constexpr int kStartAttempts = 3;
// What a launcher has to say about a lost worker, it says at once; a job ends soon after.
constexpr std::chrono::seconds kLastWords{2};
constexpr size_t kKeptEvents = 200;
constexpr size_t kIdLength = 12;

std::vector<std::string> live_tasks(const Job& job) {
  std::vector<std::string> names;
  for (const Task& task : job.tasks) {
    if (task.phase == TaskPhase::kStarting || task.phase == TaskPhase::kRunning) {
      names.push_back(task.name);
    }
  }
  return names;
}

std::vector<std::string> all_tasks(const Job& job) {
  std::vector<std::string> names;
  for (const Task& task : job.tasks) names.push_back(task.name);
  return names;
}

Task* find_task(Job& job, const std::string& name) {
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(),
                                  [&](const Task& task) { return task.name == name; });
  return found == job.tasks.end() ? nullptr : &*found;
}

/// A worker does its part until it is told to stop: any other end of it is a loss.
bool is_lost_worker(const Task& task) {
  return task.role == Role::kWorker && task.exit && !task.exit->stopped;
}

std::string quoted(const std::string& name) {
  return "'" + name + "'";
}

}  // namespace

Controller::Controller(Parts parts, SiteFacts site) : parts_(parts), site_(std::move(site)) {
  parts_.engine.listen([this](const engine::TaskReport& report) { hear(report); });
}

Controller::~Controller() {
  parts_.engine.listen(nullptr);
}

// --- what callers ask for

Result<Job> Controller::submit(const job::JobSpec& spec, const std::string& idempotency_key) {
  if (!idempotency_key.empty()) {
    MUSTER_TRY(const auto known, parts_.store.find_by_key(idempotency_key));
    if (known) {
      if (const Job* job = by_id(*known)) return *job;
    }
  }
  if (auto faults = job::validate(spec); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the job cannot be run as it is",
                 .faults = std::move(faults)};
  }
  if (by_name(spec.name) != nullptr) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "there is a job " + quoted(spec.name) + " already",
                 .advice = "choose another name, or remove it: muster delete " + spec.name};
  }
  auto job = std::make_unique<Job>(Job{.id = base::random_name(parts_.random, kIdLength),
                                       .spec = spec,
                                       .reason = "waits for the scheduler",
                                       .submitted = parts_.clock.now(),
                                       .tasks = job::tasks_of(spec)});
  note(*job, "submitted");
  MUSTER_CHECK(parts_.store.insert(*job, idempotency_key));
  jobs_.push_back(std::move(job));
  wake();
  return *jobs_.back();
}

Result<Job> Controller::stop(const std::string& name, bool now) {
  MUSTER_CHECK(find(name));
  Job& job = *by_name(name);
  if (job::is_final(job.phase)) return job;
  if (!job.stop_requested) {
    job.stop_requested = true;
    job.reason = "is being stopped";
    note(job, now ? "asked to stop at once" : "asked to stop");
    commit(job);
  }
  if (job.phase == Phase::kQueued && runs_.count(job.id) == 0) {
    finish(job);
  } else if (now) {
    end_gang(job, StopMode::kNow);
  } else {
    end_gang_gently(job);
  }
  return job;
}

Result<void> Controller::remove(const std::string& name) {
  MUSTER_CHECK(find(name));
  const Job& job = *by_name(name);
  if (!job::is_final(job.phase)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "job " + quoted(name) + " has not ended",
                 .advice = "stop it first: muster stop " + name};
  }
  // Files first: what a crash in between leaves is a job without logs, not logs without a job.
  MUSTER_CHECK(parts_.engine.remove(job.id));
  MUSTER_CHECK(parts_.store.remove(job.id));
  std::erase_if(jobs_, [&](const auto& candidate) { return candidate.get() == &job; });
  changed(name);
  return {};
}

Result<const Job*> Controller::find(const std::string& name) const {
  if (const Job* job = by_name(name)) return job;
  std::vector<std::string> names;
  for (const auto& job : jobs_) names.push_back(job->spec.name);
  const std::string near = base::nearest(name, names);
  return Error{.code = ErrorCode::kNotFound,
               .what = "there is no job " + quoted(name),
               .advice = near.empty() ? "muster list shows the jobs there are"
                                      : "did you mean " + quoted(near) + "?"};
}

std::vector<const Job*> Controller::list() const {
  std::vector<const Job*> jobs;
  for (const auto& job : jobs_) jobs.push_back(job.get());
  return jobs;
}

std::unique_ptr<LogFollower> Controller::follow_logs(const std::string& name,
                                                     const job::LogQuery& query) {
  return std::make_unique<LogFollower>(parts_.loop, *this, parts_.engine, name, query);
}

bool Controller::idle() const {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& job) { return job::is_final(job->phase); });
}

std::shared_ptr<void> Controller::watch(const std::string& name, std::function<void()> changed) {
  auto callback = std::make_shared<std::function<void()>>(std::move(changed));
  std::erase_if(watchers_, [](const auto& entry) { return entry.second.expired(); });
  watchers_.emplace(name, callback);
  return callback;
}

// --- scheduling

void Controller::wake() {
  if (std::exchange(woken_, true)) return;
  parts_.loop.post([this] {
    woken_ = false;
    schedule();
  });
}

void Controller::schedule() {
  schedule::Snapshot snapshot;
  for (const engine::Node& node : parts_.engine.nodes()) {
    snapshot.nodes.push_back({.name = node.name,
                              .total = node.total,
                              .free = node.total,
                              .free_task_slots = node.task_slots});
  }
  for (const auto& job : jobs_) {
    const bool holds_room = runs_.count(job->id) > 0;
    if (!holds_room && job->phase != Phase::kQueued) continue;
    schedule::Waiting gang{.job_id = job->id};
    for (const Task& task : job->tasks) {
      const job::Resources claim =
          task.role == Role::kLauncher ? job::Resources{} : job->spec.resources;
      gang.tasks.push_back(claim);
      if (!holds_room) continue;
      for (schedule::Node& node : snapshot.nodes) {
        if (node.name == task.node) schedule::take(node, claim);
      }
    }
    if (!holds_room) snapshot.queue.push_back(std::move(gang));
  }
  const schedule::Plan plan = schedule::make_plan(std::move(snapshot));
  for (const schedule::Wait& wait : plan.waits) {
    Job& job = *by_id(wait.job_id);
    if (job.reason == wait.reason) continue;
    job.reason = wait.reason;
    note(job, wait.reason);
    changed(job.spec.name);
  }
  for (const schedule::Start& start : plan.starts) begin(*by_id(start.job_id), start.nodes);
}

// --- starting

void Controller::begin(Job& job, const std::vector<std::string>& nodes) {
  ++job.attempt;
  job.phase = Phase::kStarting;
  job.reason = job.spec.kind == job::Kind::kMpi ? "starts its workers" : "starts";
  for (size_t i = 0; i < job.tasks.size(); ++i) job.tasks[i].node = nodes[i];
  note(job, "placed on " + nodes.front() + ", attempt " + std::to_string(job.attempt));
  commit(job);

  Run& run = *(runs_[job.id] = std::make_unique<Run>());
  const launch::Site site{.sshd = site_.sshd,
                          .user = site_.user,
                          .rank_agent = site_.rank_agent,
                          .generated_folder = [this, &job](std::string_view task) {
                            return parts_.engine.generated_folder(gang_of(job), task,
                                                                  job.spec.sandbox);
                          }};
  auto plan = launch::plan_gang(job, launch::make_seed(parts_.random), site);
  if (!plan) {
    fail(job, {.cause = plan.error().what, .advice = plan.error().advice});
    return finish_if_over(job);
  }
  run.plan = *std::move(plan);
  for (const launch::TaskPlan& task : run.plan.first) run.unanswered.insert(task.task);
  if (run.plan.first.empty()) return start_stage(job, std::exchange(run.plan.then, {}));
  run.start_timer = parts_.loop.after(
      job.spec.start_timeout,
      [this, id = job.id, attempt = job.attempt] { start_timed_out(id, attempt); });
  start_stage(job, std::exchange(run.plan.first, {}));
}

void Controller::start_stage(Job& job, std::vector<launch::TaskPlan> tasks) {
  runs_.at(job.id)->stage_under_way = true;
  for (const launch::TaskPlan& plan : tasks) {
    Task& task = *find_task(job, plan.task);
    task.phase = TaskPhase::kStarting;
    task.started = parts_.clock.now();
  }
  parts_.engine.start(gang_of(job), std::move(tasks),
                      [this, id = job.id, attempt = job.attempt](const Result<void>& started) {
                        stage_started(id, attempt, started);
                      });
}

void Controller::stage_started(const std::string& id, int attempt, const Result<void>& started) {
  Job* job = by_id(id);
  if (job == nullptr || job->attempt != attempt || runs_.count(id) == 0) return;
  Run& run = *runs_.at(id);
  run.stage_under_way = false;
  if (started) {
    // A stop that came while the engine was at it.
    if (run.ending) parts_.engine.stop(gang_of(*job), live_tasks(*job), StopMode::kNow);
    return;
  }
  for (Task& task : job->tasks) {
    const bool of_this_stage =
        task.phase == TaskPhase::kStarting &&
        (run.plan.then.empty() ? task.role != Role::kWorker : task.role == Role::kWorker);
    if (of_this_stage) task.phase = TaskPhase::kPending;
  }
  if (started.error().code == ErrorCode::kConflict && job->attempt < kStartAttempts) {
    run.requeue = started.error().what + "; it starts again on other addresses";
  } else if (!job->stop_requested) {
    fail(*job, {.cause = started.error().what, .advice = started.error().advice});
  }
  end_gang(*job, StopMode::kNow);
  finish_if_over(*job);
}

void Controller::answered(Job& job, Task& task) {
  Run& run = *runs_.at(job.id);
  task.phase = TaskPhase::kRunning;
  if (task.role == Role::kWorker) {
    run.unanswered.erase(task.name);
    if (!run.unanswered.empty() || run.ending) return changed(job.spec.name);
    run.start_timer.reset();
    note(job, "every worker answers; the launcher starts");
    return start_stage(job, std::exchange(run.plan.then, {}));
  }
  job.phase = Phase::kRunning;
  job.started = parts_.clock.now();
  job.reason = "runs";
  note(job, "running");
  commit(job);
}

void Controller::start_timed_out(const std::string& id, int attempt) {
  Job* job = by_id(id);
  if (job == nullptr || job->attempt != attempt || runs_.count(id) == 0) return;
  const std::set<std::string>& silent = runs_.at(id)->unanswered;
  if (silent.empty()) return;
  const Task& task = *find_task(*job, *silent.begin());
  std::string cause = task.name + " did not answer on its ssh port within " +
                      job::format_duration(job->spec.start_timeout);
  if (silent.size() > 1) {
    cause += " (nor did " + std::to_string(silent.size() - 1) + " more)";
  }
  fail(*job, {.task = task.name,
              .cause = std::move(cause),
              .advice = "the lines above are what its sshd said; a busy machine may need a longer "
                        "--start-timeout",
              .last_lines = last_lines(parts_.engine, gang_of(*job), task)});
  end_gang(*job, StopMode::kNow);
}

// --- what the engine reports

void Controller::hear(const engine::TaskReport& report) {
  Job* job = by_id(report.gang.job_id);
  if (job == nullptr || job->attempt != report.gang.attempt || runs_.count(job->id) == 0) return;
  Task* task = find_task(*job, report.task);
  if (task == nullptr || task->phase == TaskPhase::kEnded) return;
  if (const auto* end = std::get_if<TaskEnded>(&report.what)) {
    ended(*job, *task, *end);
  } else {
    answered(*job, *task);
  }
}

void Controller::ended(Job& job, Task& task, const TaskEnded& end) {
  task.phase = TaskPhase::kEnded;
  task.exit = end.status;
  task.ended = end.time;
  Run& run = *runs_.at(job.id);
  if (&task == &job::deciding_task(job)) {
    end_gang(job, StopMode::kNow);
  } else if (!run.ending) {
    fail(job, failure_of(task, last_lines(parts_.engine, gang_of(job), task)));
    end_gang_gently(job);
    run.last_words_timer = parts_.loop.after(kLastWords, [this, id = job.id] {
      if (Job* late = by_id(id)) end_gang(*late, StopMode::kNow);
    });
  }
  finish_if_over(job);
}

// --- ending

void Controller::fail(Job& job, job::Failure failure) {
  if (job.failure) return;  // the first cause is the one that explains the others
  note(job, failure.cause);
  job.failure = std::move(failure);
  job.reason = "is being ended";
}

void Controller::end_gang(Job& job, StopMode mode) {
  runs_.at(job.id)->ending = true;
  parts_.engine.stop(gang_of(job), live_tasks(job), mode);
}

/// The launcher is asked first: it takes its ranks down in good order. The workers follow when it
/// has ended; where there is no launcher yet, they are all there is.
void Controller::end_gang_gently(Job& job) {
  const Task& deciding = job::deciding_task(job);
  const bool up = deciding.phase == TaskPhase::kStarting || deciding.phase == TaskPhase::kRunning;
  if (!up) return end_gang(job, StopMode::kNow);
  runs_.at(job.id)->ending = true;
  parts_.engine.stop(gang_of(job), {deciding.name}, StopMode::kGraceful);
}

void Controller::finish_if_over(Job& job) {
  const Run& run = *runs_.at(job.id);
  if (run.stage_under_way || !live_tasks(job).empty()) return;
  if (run.requeue && !job.stop_requested) return requeue(job, *run.requeue);
  finish(job);
}

void Controller::finish(Job& job) {
  const Task& deciding = job::deciding_task(job);
  const bool succeeded = deciding.exit && deciding.exit->succeeded() && !job.failure;
  if (succeeded) {
    const auto ranks = parts_.engine.ranks(gang_of(job), all_tasks(job));
    if (const std::string fault = census_fault(job, ranks); !fault.empty()) {
      fail(job, {.task = deciding.name,
                 .cause = fault,
                 .advice = "give mpirun --hostfile /generated/hostfile and no --host"});
    }
  } else if (!job.failure && !job.stop_requested) {
    const auto lost = std::find_if(job.tasks.begin(), job.tasks.end(), is_lost_worker);
    const Task& culprit = lost == job.tasks.end() ? deciding : *lost;
    fail(job, failure_of(culprit, last_lines(parts_.engine, gang_of(job), culprit)));
  }
  job.phase = job.failure ? Phase::kFailed : succeeded ? Phase::kSucceeded : Phase::kStopped;
  if (deciding.exit) job.exit_code = deciding.exit->shell_code();
  if (job.phase == Phase::kFailed && job.exit_code.value_or(0) == 0) job.exit_code = 1;
  job.reason = job.failure ? job.failure->cause : succeeded ? "done" : "was stopped";
  job.ended = parts_.clock.now();
  note(job, std::string(job::to_string(job.phase)));
  if (job.attempt > 0) parts_.engine.scrub(gang_of(job));
  runs_.erase(job.id);
  commit(job);
  wake();
}

void Controller::requeue(Job& job, const std::string& why) {
  parts_.engine.scrub(gang_of(job));
  job.phase = Phase::kQueued;
  job.reason = why;
  job.failure.reset();
  job.tasks = job::tasks_of(job.spec);
  note(job, why);
  runs_.erase(job.id);
  commit(job);
  wake();
}

// --- bookkeeping

// A state that cannot be committed is kept in memory and written with the next change: the job goes
// on, and a restarted server would take it up from the engine's own records.
void Controller::commit(Job& job) {
  if (const auto written = parts_.store.update(job); !written) {
    base::log_error("job " + job.spec.name + ": " + written.error().what);
  }
  changed(job.spec.name);
}

void Controller::note(Job& job, std::string text) {
  if (job.events.size() >= kKeptEvents) job.events.erase(job.events.begin());
  job.events.push_back({.time = parts_.clock.now(), .text = std::move(text)});
}

void Controller::changed(const std::string& name) {
  std::vector<std::shared_ptr<std::function<void()>>> callbacks;
  for (auto [at, end] = watchers_.equal_range(name); at != end; ++at) {
    if (auto callback = at->second.lock()) callbacks.push_back(std::move(callback));
  }
  for (const auto& callback : callbacks) (*callback)();
}

Job* Controller::by_id(const std::string& id) {
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& job) { return job->id == id; });
  return found == jobs_.end() ? nullptr : found->get();
}

Job* Controller::by_name(const std::string& name) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const auto& job) { return job->spec.name == name; });
  return found == jobs_.end() ? nullptr : found->get();
}

}  // namespace muster::control
