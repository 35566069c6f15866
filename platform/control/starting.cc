// From a placed gang to one that runs: its workers, then its launcher.
#include <algorithm>

#include "base/units.h"
#include "control/controller.h"
#include "control/failure.h"
#include "control/port_taken.h"
#include "control/retry.h"
#include "control/run.h"
#include "control/schedule_view.h"
#include "launch/task_environment.h"

namespace muster::control {

using base::ErrorCode;
using engine::StopMode;
using job::Job;
using job::Phase;
using job::Task;
using job::TaskPhase;

namespace {

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

/// The nodes of the tasks that were placed, each once.
std::vector<std::string> nodes_of(const Job& job) {
  std::set<std::string> nodes;
  for (const Task& task : job.tasks) {
    if (!task.node.empty()) nodes.insert(task.node);
  }
  return {nodes.begin(), nodes.end()};
}

std::vector<std::string> node_names(const std::vector<engine::Node>& nodes) {
  std::vector<std::string> names;
  for (const engine::Node& node : nodes) names.push_back(node.name);
  return names;
}

bool needs_a_shell(const launch::TaskPlan& plan) {
  return !plan.argv.empty() && (plan.argv.front() == "sh" || plan.argv.front() == "/bin/sh");
}

}  // namespace

Result<void> check_shells(const std::vector<launch::TaskPlan>& tasks,
                          const std::map<std::string, launch::ImageFacts>& images) {
  for (const launch::TaskPlan& task : tasks) {
    const auto found = images.find(task.task);
    if (found == images.end() || found->second.has_shell || !needs_a_shell(task)) continue;
    return base::Error{.code = ErrorCode::kRefused,
                       .what = task.task + " is to run a line of shell, and image '" +
                               found->second.image + "' has no shell (/bin/sh)",
                       .advice =
                           "give a program of the image and its arguments as words of "
                           "their own, or take an image with a shell"};
  }
  return {};
}

Controller::Entry* Controller::run_of(const std::string& id, int attempt) const {
  Entry* const entry = by_id(id);
  const bool is_it = entry != nullptr && entry->run && entry->job.attempt == attempt;
  return is_it ? entry : nullptr;
}

launch::Site Controller::site_of(const Job& job, const Run& run) const {
  const engine::Engine& engine = parts_.engine;
  const engine::Engine::ProgramsInTasks programs = engine.programs_in_tasks();
  const auto seen = [](const std::string& by_tasks, const std::string& here) {
    return by_tasks.empty() ? here : by_tasks;
  };
  launch::Site site{.sshd = site_.sshd,
                    .user = site_.user,
                    .programs = site_.programs,
                    .rank_agent = seen(programs.shim, site_.rank_agent),
                    .images = site_.images,
                    .reach = run.reach ? *run.reach : engine.reach(nodes_of(job)),
                    .image_facts = run.images,
                    .remote_shell = seen(programs.remote_shell, site_.remote_shell),
                    .srun = engine.srun_in_tasks(),
                    .joiner = programs.joiner,
                    .launch = job.launch ? job.launch->by : job::LaunchBy::kSsh};
  site.generated_folder = [&engine, &job](std::string_view task) {
    return engine.generated_folder(engine_gang(job), task, job.spec.sandbox);
  };
  site.gpus_of = [this](const std::string& name) {
    const engine::Node* const node = node_named(name);
    return node ? gpu_names(*node) : std::vector<std::string>();
  };
  site.address_of = [this](const std::string& name) {
    const engine::Node* const node = node_named(name);
    return node ? node->address : std::string();
  };
  return site;
}

Result<launch::Site> Controller::site_with_secrets(const Job& job, const Run& run) const {
  launch::Site site = site_of(job, run);
  MUSTER_TRY(site.secrets, secrets_of(job, parts_.accounts));
  return site;
}

Result<launch::GangPlan> Controller::plan_of(Job& job, Run& run) {
  // Those who join later may come to any node.
  if (run.can_grow) run.reach = parts_.engine.reach(node_names(nodes_));
  MUSTER_TRY(launch::Site site, site_with_secrets(job, run));
  if (job.spec.kind == job::Kind::kMpi) {
    MUSTER_TRY(job.launch, launch::choose_launch(job, site));
    site.launch = job.launch->by;
  }
  const launch::GangSeed seed = launch::make_seed(parts_.random);
  MUSTER_TRY(launch::GangPlan plan, launch::plan_gang(job, seed, site));
  for (const auto* stage : {&plan.first, &plan.then})
    MUSTER_CHECK(check_shells(*stage, run.images));
  if (run.can_grow) keep_seed(job, run, seed);
  return plan;
}

/// Of an image that is not run, whoever wonders at what the tasks find is told; once.
void Controller::tell_what_stands_in(Job& job) {
  if (job.spec.image.empty() || job.attempt > 1 || parts_.engine.runs_images()) return;
  const job::ImageStandIn* const image = job::find_stand_in(site_.images, job.spec.image);
  const bool has_stand_in = image != nullptr && !image->command.empty() && job.spec.command.empty();
  note(job, job::ImageNotRun{.image = job.spec.image, .has_stand_in = has_stand_in});
}

/// Of variables of the job that keep Muster's from its tasks; once.
void Controller::tell_of_own_variables(Job& job) {
  if (job.attempt > 1) return;
  for (std::string& text :
       launch::notes_on_own_variables(job.spec, site_.images, parts_.engine.runs_images())) {
    note(job, job::Remark{std::move(text)});
  }
}

void Controller::begin(Entry& entry) {
  Job& job = entry.job;
  Run& run = *entry.run;
  // Stopped or evicted before it was begun.
  if (run.ending || job.stop_requested || job.eviction) return finish_if_over(entry);
  if (!asks_a_cluster() && !has_room_for(places_of(job))) {
    run.requeue = job::AttemptAbandoned{.why = job::AttemptAbandoned::Why::kNodeChanged};
    return finish_if_over(entry);
  }
  // Again, once its images are there.
  if (parts_.engine.runs_images() && run.images.empty()) return fetch_images(entry);
  start_planned(entry);
}

namespace {

std::map<std::string, std::string> tasks_by_address(const launch::GangPlan& plan) {
  std::map<std::string, std::string> tasks;
  std::set<std::string> shared;
  for (const auto* stage : {&plan.first, &plan.then}) {
    for (const launch::TaskPlan& task : *stage) {
      if (!tasks.emplace(task.address, task.task).second) shared.insert(task.address);
    }
  }
  for (const std::string& address : shared) tasks.erase(address);
  return tasks;
}

}  // namespace

void Controller::start_planned(Entry& entry) {
  Job& job = entry.job;
  Run& run = *entry.run;
  auto plan = plan_of(job, run);
  if (!plan) {
    fail(entry, {.cause = job::Remark{plan.error().what}, .advice = plan.error().advice});
    return finish_if_over(entry);
  }
  run.plan = *std::move(plan);
  run.tasks_by_address = tasks_by_address(run.plan);
  if (!job.sealed_seed.empty()) change(entry);
  tell_what_stands_in(job);
  tell_of_own_variables(job);
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
    for (const launch::ServedPort& served : plan.serves) entry.run->served.insert(served.port);
  }
  parts_.engine.start(engine_gang(job), std::move(tasks),
                      [this, alive = std::weak_ptr<bool>(alive_), id = job.id,
                       attempt = job.attempt](const Result<void>& started) {
                        if (!alive.expired()) stage_started(id, attempt, started);
                      });
}

void Controller::stage_started(const std::string& id, int attempt, const Result<void>& started) {
  Entry* const entry = run_of(id, attempt);
  if (entry == nullptr) return;
  Job& job = entry->job;
  Run& run = *entry->run;
  run.stage_under_way = false;
  if (!started) ++metrics_.engine_errors;
  if (started) {
    if (run.plan.then.empty()) learn_mpi(*entry);
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
  // What comes of it where its room was taken is decided already.
  if (run.room_is_taken) {
    end_gang(*entry, StopMode::kNow);
    return finish_if_over(*entry);
  }
  if (started.error().code == ErrorCode::kConflict && job.attempt - job.restarts < kStartAttempts) {
    run.requeue = job::AttemptAbandoned{.why = job::AttemptAbandoned::Why::kNamesTaken,
                                        .error = started.error().what};
  } else if (!job.stop_requested && !job.eviction && !try_again_later(*entry, started.error())) {
    fail(*entry, {.cause = job::Remark{started.error().what}, .advice = started.error().advice});
  }
  end_gang(*entry, StopMode::kNow);
  finish_if_over(*entry);
}

/// Where the engine of a node does not answer, the job waits a moment, and may go elsewhere. What
/// does not get better has failed.
bool Controller::try_again_later(Entry& entry, const base::Error& error) {
  if (error.code != ErrorCode::kUnavailable) return false;
  const auto pause = pause_before_another_try(entry);
  if (!pause) return false;
  entry.run->requeue =
      job::AttemptAbandoned{.why = job::AttemptAbandoned::Why::kEngineAway, .error = error.what};
  entry.run->requeue_delay = *pause;
  return true;
}

/// Nothing: it was tried often enough.
std::optional<std::chrono::milliseconds> Controller::pause_before_another_try(Entry& entry) {
  constexpr int kMostInARow = 4;
  if (++entry.unanswered_starts >= kMostInARow) return std::nullopt;
  return backoff(entry.unanswered_starts + 1);
}

/// The leader starts with the last of those that it waits for. One that ran to its end so quickly
/// that nobody heard of it before was up, too.
void Controller::is_up(Entry& entry, const Task& task) {
  Job& job = entry.job;
  Run& run = *entry.run;
  const bool was_awaited = run.unanswered.erase(task.name) > 0;
  if (!was_awaited || !run.unanswered.empty() || run.ending || job.eviction) return change(entry);
  run.start_timer.reset();
  if (!asks_a_cluster() && is_silent(job::deciding_task(job).node)) {
    run.requeue = job::AttemptAbandoned{.why = job::AttemptAbandoned::Why::kNodeSilent,
                                        .node = job::deciding_task(job).node};
    change(entry);
    return end_gang(entry, StopMode::kNow);
  }
  note(job, job::EveryWorkerAnswers{job::deciding_task(job).name});
  change(entry);
  start_stage(entry, std::exchange(run.plan.then, {}));
}

void Controller::answered(Entry& entry, Task& task) {
  Job& job = entry.job;
  Run& run = *entry.run;
  task.phase = TaskPhase::kRunning;
  if (!leads(job, task)) {
    const bool joins = run.newcomers.erase(task.name) > 0;
    return joins ? has_joined(entry, task) : is_up(entry, task);
  }
  if (job.phase == Phase::kRunning) return;  // taken up
  job.phase = Phase::kRunning;
  job.started = parts_.clock.now();
  entry.unanswered_starts = 0;
  measure_start(entry);
  if (!run.ending) job.reason = running_reason(job);
  note(job, job::Notice{job::Notice::What::kRunning});
  change(entry);
  limit_run_time(entry);
  grow(entry);  // by what room was given meanwhile
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
        Entry* const late = run_of(id, attempt);
        if (late == nullptr || late->run->ending) return;
        fail(*late, {.task = job::deciding_task(late->job).name,
                     .cause = job::TimeLimitReached{limit},
                     .advice = "give it a longer --time-limit, or checkpoints to go on from"});
        end_gang_gently(*late);
      });
}

void Controller::start_timed_out(const std::string& id, int attempt) {
  Entry* const entry = run_of(id, attempt);
  if (entry == nullptr) return;
  Job& job = entry->job;
  const std::set<std::string>& silent = entry->run->unanswered;
  if (silent.empty() || job.eviction) return;
  const Task& task = *find_task(job, *silent.begin());
  entry->run->culprit = task;
  entry->run->culprit_lines = last_lines(parts_.engine, engine_gang(job), task);
  fail(*entry,
       {.task = task.name,
        .cause = job::NoSshAnswer{.task = task.name,
                                  .bound = job.spec.start_timeout,
                                  .others = static_cast<int>(silent.size()) - 1},
        .advice = "the lines above are what its sshd said; a busy machine may need a longer "
                  "--start-timeout",
        .last_lines = entry->run->culprit_lines});
  end_gang(*entry, StopMode::kNow);
}

}  // namespace muster::control
