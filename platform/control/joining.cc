// The way of one worker into a gang that runs: its seat is committed, its image brought, those who
// are there learn where it answers, and it starts; once it answers, all learn that it takes part.
//
// One that does not come so far is no failure of the job: its seat is given back, and whoever the
// scheduler gives it next is another.
#include <algorithm>

#include "base/units.h"
#include "control/controller.h"
#include "control/live_gang.h"
#include "control/run.h"

namespace muster::control {

using engine::StopMode;
using job::Job;
using job::Role;
using job::Task;
using job::TaskPhase;

namespace {

/// The worker of this seat that was never started, or one more; nullptr where `most` tasks are
/// there already.
Task* newcomer_for(Job& job, int seat, size_t most) {
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return task.seat == seat && task.node.empty() && !task.left && !task.started;
  });
  if (found != job.tasks.end()) return &*found;
  if (job.tasks.size() >= most) return nullptr;
  job.tasks.push_back(job::next_worker(job, seat));
  return &job.tasks.back();
}

schedule::TaskPlace seat_place(const Task& task) {
  return {.node = task.node, .devices = task.devices, .share_milli = task.gpu_share_milli};
}

/// With those that are still on their way.
int count_seated(const Job& job) {
  return static_cast<int>(std::count_if(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    const bool is_here = !task.node.empty() && !task.left && task.phase != TaskPhase::kEnded;
    return task.role == Role::kWorker && is_here;
  }));
}

}  // namespace

/// Sends somebody to each seat that room was given for.
void Controller::grow(Entry& entry) {
  Run& run = *entry.run;
  const bool can_grow = run.can_grow && run.kept.has_value();
  if (!may_resize(entry) || !can_grow || run.rest_timer || run.given.empty()) return;
  Job& job = entry.job;
  const size_t most = job::tasks_of(job.spec).size() + pace_.most_joiners;
  std::vector<std::string> names;
  for (const auto& [seat, place] : std::exchange(run.given, {})) {
    Task* const task = newcomer_for(job, seat, most);
    if (task == nullptr) {
      run.given[seat] = place;
      continue;
    }
    put(*task, place);
    run.newcomers[task->name];
    names.push_back(task->name);
    note(job,
         job::WorkerJoins{
             .task = task->name, .node = task->node, .now = workers_of(job, count_seated(job))});
  }
  if (!run.given.empty()) {
    // Later: the scheduler may be in the midst of giving.
    soon([this, id = job.id, attempt = job.attempt] {
      Entry* const late = run_of(id, attempt);
      if (late == nullptr) return;
      stop_growing(*late, std::to_string(pace_.most_joiners) + " have joined it since its start");
    });
  }
  if (names.empty()) return;
  change(entry);
  journal_.once_committed([this, id = job.id, attempt = job.attempt, names] {
    for (const std::string& name : names) begin_newcomer(id, attempt, name);
  });
}

void Controller::begin_newcomer(const std::string& id, int attempt, const std::string& name) {
  Entry* const entry = run_of(id, attempt);
  if (entry == nullptr || !entry->run->newcomers.contains(name)) return;
  Task& task = *find_task(entry->job, name);
  if (!has_room_for({seat_place(task)})) return turn_away(*entry, task, "its node has changed");
  if (parts_.engine.runs_images()) return fetch_newcomers_image(*entry, task);
  line_up_newcomer(*entry, name);
}

void Controller::line_up_newcomer(Entry& entry, const std::string& name) {
  add_step(entry, [this, name](Entry& now, std::function<void()> done) {
    start_newcomer(now, name, std::move(done));
  });
}

/// Its plan, and what those who are there have to know of it first.
Result<launch::Growth> Controller::plan_of_newcomer(const Job& job, const Run& run,
                                                    const std::string& name) {
  std::vector<std::string> nodes;
  for (const Task& task : job.tasks) {
    if (!task.node.empty() && !task.left) nodes.push_back(task.node);
  }
  const launch::Reach needed = parts_.engine.reach(nodes);
  if (needed == launch::Reach::kHosts && run.kept->reach != needed) {
    return base::Error{.code = base::ErrorCode::kRefused,
                       .what =
                           "the others are on a network of one machine alone, and it is on "
                           "another (the machine came after their start)"};
  }
  MUSTER_TRY(const launch::Site site, site_with_secrets(job, run));
  MUSTER_TRY(launch::Growth growth, launch::plan_growth(job, {name}, run.kept->seed, site));
  MUSTER_CHECK(check_shells(growth.joining, run.images));
  return growth;
}

void Controller::start_newcomer(Entry& entry, const std::string& name, std::function<void()> done) {
  const auto newcomer = entry.run->newcomers.find(name);
  if (newcomer == entry.run->newcomers.end() || !may_resize(entry)) return done();
  // One that was sent away and came again has a turn of its own to come.
  if (newcomer->second.fetch || newcomer->second.is_started) return done();
  auto growth = plan_of_newcomer(entry.job, *entry.run, name);
  if (!growth) {
    Task& task = *find_task(entry.job, name);
    if (growth.error().code == base::ErrorCode::kRefused) {
      entry.run->unfit.push_back(task.node);
      entry.run->asks_for_less = true;
    }
    turn_away(entry, task, growth.error().what);
    return done();
  }
  change_files(entry, std::move(growth->before),
               [this, id = entry.job.id, attempt = entry.job.attempt, name,
                plans = std::move(growth->joining), done](const Result<void>& told) {
                 Entry* const now = run_of(id, attempt);
                 if (now == nullptr) return;
                 if (!now->run->newcomers.contains(name) || !may_resize(*now)) return done();
                 if (told) return launch_newcomer(*now, name, plans, done);
                 turn_away(*now, *find_task(now->job, name),
                           "the others could not be told of it: " + told.error().what);
                 done();
               });
}

void Controller::launch_newcomer(Entry& entry, const std::string& name,
                                 std::vector<launch::TaskPlan> plans, std::function<void()> done) {
  Task& task = *find_task(entry.job, name);
  task.phase = TaskPhase::kStarting;
  task.started = parts_.clock.now();
  entry.run->newcomers.at(name).is_started = true;
  change(entry);
  parts_.engine.start(
      engine_gang(entry.job), std::move(plans),
      [this, alive = std::weak_ptr<bool>(alive_), id = entry.job.id, attempt = entry.job.attempt,
       name, done = std::move(done)](const Result<void>& started) {
        if (alive.expired()) return;
        if (Entry* const now = run_of(id, attempt)) newcomer_started(*now, name, started);
        done();
      });
}

void Controller::newcomer_started(Entry& entry, const std::string& name,
                                  const Result<void>& started) {
  Job& job = entry.job;
  Run& run = *entry.run;
  Task& task = *find_task(job, name);
  if (!started) {
    ++metrics_.engine_errors;
    if (task.phase == TaskPhase::kEnded) return;
    // The engine knows its name, and takes it for no other.
    task.phase = TaskPhase::kEnded;
    task.ended = parts_.clock.now();
    const bool was_wanted = !task.left && may_resize(entry);
    task.left = true;
    run.newcomers.erase(name);
    if (was_wanted) note_setback(entry, name + " could not join: " + started.error().what);
    has_left(entry, task);
    return finish_if_over(entry);
  }
  // A stop that came while the engine was at it.
  if (task.left || run.ending) {
    return parts_.engine.stop(engine_gang(job), {name}, StopMode::kNow);
  }
  const auto newcomer = run.newcomers.find(name);
  if (newcomer == run.newcomers.end()) return;  // it answers already
  newcomer->second.answer_timer =
      parts_.loop.after(job.spec.start_timeout, [this, id = job.id, attempt = job.attempt, name] {
        if (Entry* const late = run_of(id, attempt)) newcomer_timed_out(*late, name);
      });
}

void Controller::newcomer_timed_out(Entry& entry, const std::string& name) {
  Job& job = entry.job;
  if (entry.run->newcomers.erase(name) == 0 || !may_resize(entry)) return;
  find_task(job, name)->left = true;
  note_setback(entry, name + " could not join: it did not answer within " +
                          base::format_duration(job.spec.start_timeout));
  parts_.engine.stop(engine_gang(job), {name}, StopMode::kNow);
}

void Controller::has_joined(Entry& entry, const Task& task) {
  Job& job = entry.job;
  note(job, job::WorkerJoins{.task = task.name, .now = workers_of(job, count_members(job))});
  show_size(entry);
  change(entry);
  add_step(entry, [this, name = task.name](Entry& now, std::function<void()> done) {
    catch_up(now, name, std::move(done));
  });
  tell_members(entry, {});
}

/// Who was sent after it while it was on its way, it has not heard of.
void Controller::catch_up(Entry& entry, const std::string& name, std::function<void()> done) {
  if (!may_resize(entry)) return done();
  const Run& run = *entry.run;
  const auto site = site_with_secrets(entry.job, run);
  std::vector<launch::FileChange> changes;
  if (site) {
    if (auto growth = launch::plan_growth(entry.job, {}, run.kept->seed, *site)) {
      changes = std::move(growth->before);
    }
  }
  std::erase_if(changes, [&](const launch::FileChange& change) { return change.task != name; });
  change_files(entry, std::move(changes), [done = std::move(done)](const Result<void>&) {
    // One that does not know of a later one still takes part.
    done();
  });
}

/// It ended by itself before it answered.
void Controller::did_not_join(Entry& entry, Task& task) {
  task.left = true;
  note_setback(entry, task.name + " could not join: it " + job::explain(*task.exit));
  has_left(entry, task);
}

/// One that nobody has begun to start.
void Controller::turn_away(Entry& entry, Task& task, const std::string& why) {
  entry.run->newcomers.erase(task.name);
  unseat(task);
  if (may_resize(entry)) note_setback(entry, task.name + " could not join: " + why);
  give_back(entry, {task.seat});
}

void Controller::note_setback(Entry& entry, const std::string& what) {
  Job& job = entry.job;
  ++entry.run->setbacks;
  // Others may have left since it was counted upon.
  const bool goes_on = can_do_without(entry, {});
  job::WorkerDidNotJoin fact{.what = what};
  if (goes_on) fact.left = workers_of(job, count_members(job));
  note(job, std::move(fact));
  change(entry);
  if (goes_on) return rest(entry);
  entry.run->goes_whole = true;
  evict(entry, job::TooFewWorkers{job.spec.scheduling.min_workers.value_or(job.spec.workers)});
}

/// For the rest of the attempt. What there is of it goes on, and can still shrink.
void Controller::stop_growing(Entry& entry, const std::string& why) {
  Run& run = *entry.run;
  if (!std::exchange(run.can_grow, false)) return;
  run.cannot_grow = why;
  note(entry.job, job::Remark{"no worker can join it any more: " + why});
  change(entry);
  std::vector<int> seats;
  for (const auto& [seat, place] : std::exchange(run.given, {})) seats.push_back(seat);
  give_back(entry, seats);
}

/// The room of those that were not started stays the gang's; those that were are tasks like any
/// other.
void Controller::give_up_newcomers(Entry& entry) {
  for (const auto& [name, newcomer] : std::exchange(entry.run->newcomers, {})) {
    if (newcomer.is_started) continue;
    Task& task = *find_task(entry.job, name);
    entry.run->given[task.seat] = seat_place(task);
    unseat(task);
  }
}

}  // namespace muster::control
