// A gang whose workers come and go while it runs, with the room that the scheduler gives and takes.
//
// Each worker sits in a seat: its number in the gang as the scheduler counts. Who is to leave is
// marked so, and that is committed; then those who stay are told, and only after that is it
// stopped. Its seat is given back when nothing of it runs any more, and the worker that comes there
// next has a name of its own. What is done to the tasks is done one thing after the other, so that
// no list of who takes part overtakes a later one.
//
// Below its minimum a job does not go on: its whole attempt ends, as that of any other does.
#include <algorithm>

#include "base/text.h"
#include "control/controller.h"
#include "control/live_gang.h"
#include "control/retry.h"
#include "control/run.h"
#include "launch/elastic.h"

namespace muster::control {

using engine::StopMode;
using job::Job;
using job::Phase;
using job::Role;
using job::Task;
using job::TaskPhase;

namespace {

constexpr int kMostLostSoon = 3;

int least_workers(const Job& job) {
  return job.spec.scheduling.min_workers.value_or(job.spec.workers);
}

}  // namespace

bool Controller::may_resize(const Entry& entry) const {
  const Job& job = entry.job;
  return entry.run && job.phase == Phase::kRunning && !entry.run->ending && !job.eviction &&
         !job.stop_requested && launch::resizes_live(job.spec);
}

void Controller::take_room(Entry& entry, const schedule::Start& start) {
  if (!launch::resizes_live(entry.job.spec)) return;
  for (size_t i = 0; i < start.tasks.size(); ++i) {
    entry.run->given[start.tasks[i]] = start.places[i];
  }
  grow(entry);
}

// --- who leaves

/// Whoever is on the way in counts as there, as it does for the scheduler: it will be in a moment.
bool Controller::can_do_without(const Entry& entry, const std::vector<int>& seats) const {
  const auto goes = [&](int seat) {
    return std::find(seats.begin(), seats.end(), seat) != seats.end();
  };
  int staying = 0;
  for (const Task& task : entry.job.tasks) {
    if (task.node.empty() || task.left) continue;
    const bool is_worker = task.role == Role::kWorker;
    if (goes(task.seat) && !is_worker) return false;
    staying += is_worker && !goes(task.seat);
  }
  for (const auto& [seat, place] : entry.run->given) staying += !goes(seat);
  return staying >= least_workers(entry.job);
}

/// Has these seats left, where the job can go on without; else changes nothing.
bool Controller::shrink(Entry& entry, const std::vector<int>& seats, const job::Eviction& why) {
  if (!may_resize(entry) || !can_do_without(entry, seats)) return false;
  Job& job = entry.job;
  std::vector<std::string> names;
  std::vector<std::string> on_their_way;
  for (const int seat : seats) {
    const Task* const task = leave_seat(entry, seat);
    if (task == nullptr) continue;
    names.push_back(task->name);
    if (task->phase == TaskPhase::kStarting) on_their_way.push_back(task->name);
  }
  if (!names.empty()) {
    note(job, job::WorkersLeave{
                  .tasks = names, .why = why, .left = workers_of(job, count_members(job))});
    show_size(entry);
    change(entry);
    journal_.once_committed([this, id = job.id, attempt = job.attempt, names, on_their_way] {
      // Nobody counts on them yet, and others may have to wait until their start is over.
      stop_leaving(id, attempt, on_their_way);
      if (Entry* const late = run_of(id, attempt)) say_goodbye(*late, names);
    });
  }
  std::vector<int> free = seats;
  std::erase_if(free, [&](int seat) {
    return std::any_of(job.tasks.begin(), job.tasks.end(),
                       [&](const Task& task) { return task.seat == seat && holds_room(task); });
  });
  give_back(entry, free);
  return true;
}

/// Who sat there, and has left; nullptr: nobody whom anybody has heard of.
const Task* Controller::leave_seat(Entry& entry, int seat) {
  Run& run = *entry.run;
  run.given.erase(seat);
  Task* const task = sitter_of(entry.job, seat);
  if (task == nullptr) return nullptr;
  const auto newcomer = run.newcomers.extract(task->name);
  if (!newcomer.empty() && !newcomer.mapped().is_started) {
    unseat(*task);
  } else {
    task->left = true;
  }
  return task;
}

void Controller::say_goodbye(Entry& entry, const std::vector<std::string>& leaving) {
  tell_members(entry, [this, id = entry.job.id, attempt = entry.job.attempt, leaving](
                          Entry& told, bool anybody) {
    const auto notice = anybody ? pace_.notice : std::chrono::milliseconds(0);
    told.run->notices.push_back(
        later(notice, [this, id, attempt, leaving] { stop_leaving(id, attempt, leaving); }));
  });
}

void Controller::stop_leaving(const std::string& id, int attempt,
                              const std::vector<std::string>& leaving) {
  Entry* const entry = run_of(id, attempt);
  if (entry == nullptr) return;
  std::vector<std::string> live = live_tasks(entry->job);
  std::erase_if(live, [&](const std::string& name) {
    return std::find(leaving.begin(), leaving.end(), name) == leaving.end();
  });
  if (!live.empty()) parts_.engine.stop(engine_gang(entry->job), live, StopMode::kGraceful);
}

/// Nothing of it runs any more.
void Controller::has_left(Entry& entry, const Task& task) {
  Run& run = *entry.run;
  const bool was_from_before = run.leaving_from_before.erase(task.name) > 0;
  if (was_from_before && run.leaving_from_before.empty()) --evictions_from_before_;
  change(entry);
  give_back(entry, {task.seat});
}

void Controller::give_back(Entry& entry, const std::vector<int>& seats) {
  if (seats.empty()) return;
  for (const int seat : seats) scheduler_.lost(entry.job.id, seat, forward_.now());
  ask_for_less(entry);
  wake();
}

/// Whether it ends, and nothing that it was given for later is of use to what comes after: an
/// attempt that the scheduler has evicted may start again on what is left to it.
bool Controller::wants_no_more(const Entry& entry) const {
  const Run& run = *entry.run;
  const bool goes_whole = run.evicted.empty() && (!entry.job.eviction || run.goes_whole);
  return run.ending && goes_whole && launch::resizes_live(entry.job.spec) && !asks_a_cluster();
}

/// Tells the scheduler that it gives room in vain. Not while some of its room comes back: it would
/// forget for whom.
void Controller::ask_for_less(Entry& entry) {
  Job& job = entry.job;
  Run& run = *entry.run;
  const bool some_leave = std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    return task.left && holds_room(task);
  });
  if (some_leave) return;
  if (wants_no_more(entry)) {
    run.can_grow = false;
  } else if (!may_resize(entry)) {
    return;
  }
  if (!std::exchange(run.asks_for_less, false) && run.can_grow) return;
  run.given.clear();
  if (!run.can_grow) close_up_seats(job);
  hold_as_placed(entry);
}

/// What was given there, and nobody was sent to yet.
void Controller::give_back_room_on(Entry& entry, const std::string& node) {
  std::vector<int> seats;
  for (const auto& [seat, place] : entry.run->given) {
    if (place.node == node) seats.push_back(seat);
  }
  for (const int seat : seats) entry.run->given.erase(seat);
  give_back(entry, seats);
}

// --- who is lost

/// Whether the job is none the worse for it than that it has a worker less.
bool Controller::goes_on_without(const Entry& entry, const Task& lost) const {
  const Job& job = entry.job;
  if (!may_resize(entry) || lost.role != Role::kWorker || falls_over(entry)) return false;
  const auto others = std::count_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    const bool is_another = task.role == Role::kWorker && !task.left && task.name != lost.name;
    const bool has_done_its_part = task.phase == TaskPhase::kEnded && !is_loss(job, task);
    return is_another && (task.phase == TaskPhase::kRunning || has_done_its_part);
  });
  return others >= least_workers(job);
}

void Controller::note_loss(Entry& entry, const Task& lost) {
  Run& run = *entry.run;
  if (!launch::resizes_live(entry.job.spec) || lost.role != Role::kWorker) return;
  const bool was_soon = lost.started && parts_.clock.now() - *lost.started < kSoon;
  // What a machine takes with it says nothing about the program.
  if (was_soon && node_named(lost.node) != nullptr) run.lost_soon.insert(lost.name);
}

/// Whether its workers are lost as fast as they are started.
bool Controller::falls_over(const Entry& entry) const {
  return lost_soon_in_a_row(entry.job, entry.run->lost_soon, parts_.clock.now()) >= kMostLostSoon;
}

void Controller::lose_worker(Entry& entry, Task& task) {
  Job& job = entry.job;
  task.left = true;
  note(job,
       job::WorkerLost{
           .task = task.name, .exit = *task.exit, .left = workers_of(job, count_members(job))});
  show_size(entry);
  change(entry);
  tell_members(entry, {});
  entry.run->setbacks = entry.run->lost_soon.contains(task.name) ? entry.run->setbacks + 1 : 0;
  rest(entry);
  give_back(entry, {task.seat});
}

/// Nobody joins for a while, where the last ones had no luck.
void Controller::rest(Entry& entry) {
  Run& run = *entry.run;
  const auto pause = backoff(run.setbacks + 1, pace_.rest);
  if (pause <= std::chrono::milliseconds(0)) return;
  run.rest_timer = parts_.loop.after(pause, [this, id = entry.job.id, attempt = entry.job.attempt] {
    Entry* const late = run_of(id, attempt);
    if (late == nullptr) return;
    late->run->rest_timer.reset();
    grow(*late);
  });
}

void Controller::show_size(Entry& entry) {
  if (may_resize(entry)) entry.job.reason = running_reason(entry.job);
}

// --- telling those who stay

/// `then` is told whether there was anybody to tell anything.
void Controller::tell_members(Entry& entry, std::function<void(Entry&, bool)> then) {
  add_step(entry, [this, then = std::move(then)](Entry& now, std::function<void()> done) {
    const auto told = [this, then, done, id = now.job.id, attempt = now.job.attempt](
                          const Result<void>& result, bool anybody) {
      Entry* const after = run_of(id, attempt);
      if (after == nullptr) return;
      if (!result) {
        note(after->job,
             job::Remark{"its workers could not be told who takes part: " + result.error().what});
        change(*after);
      }
      if (then) then(*after, anybody);
      done();
    };
    if (!may_resize(now)) return told({}, false);
    auto changes = launch::plan_membership(now.job, members_of(now.job));
    if (!changes) return told(changes.error(), false);
    const bool anybody = !changes->empty();
    change_files(now, *std::move(changes),
                 [told, anybody](const Result<void>& result) { told(result, anybody); });
  });
}

void Controller::change_files(Entry& entry, std::vector<launch::FileChange> changes,
                              std::function<void(const Result<void>&)> then) {
  if (changes.empty()) return then({});
  parts_.engine.change_files(
      engine_gang(entry.job), std::move(changes),
      [alive = std::weak_ptr<bool>(alive_), then = std::move(then)](const Result<void>& result) {
        if (!alive.expired()) then(result);
      });
}

void Controller::add_step(Entry& entry, Step step) {
  entry.run->steps.push_back(std::move(step));
  next_step(entry.job.id, entry.job.attempt);
}

void Controller::next_step(const std::string& id, int attempt) {
  Entry* const entry = run_of(id, attempt);
  if (entry == nullptr || entry->run->steps.empty()) return;
  if (std::exchange(entry->run->step_under_way, true)) return;
  const Step step = std::move(entry->run->steps.front());
  entry->run->steps.pop_front();
  step(*entry, [this, id, attempt] {
    Entry* const after = run_of(id, attempt);
    if (after == nullptr) return;
    after->run->step_under_way = false;
    next_step(id, attempt);
  });
}

// --- what outlives the server

void Controller::keep_seed(Job& job, Run& run, const launch::GangSeed& seed) {
  run.kept = KeptSeed{.seed = seed, .reach = *run.reach};
  if (parts_.accounts == nullptr) return;
  job.sealed_seed = parts_.accounts->seal(to_text(*run.kept), job.spec.project, seal_name(job));
}

/// Without it the gang can still shrink.
void Controller::find_seed(const Job& job, Run& run) {
  Result<std::string> text =
      base::Error{.code = base::ErrorCode::kNotFound,
                  .what = "the server before this one had no key to keep it"};
  if (parts_.accounts != nullptr && !job.sealed_seed.empty()) {
    text = parts_.accounts->open(job.sealed_seed, job.spec.project, seal_name(job));
  }
  if (!text) {
    run.cannot_grow = text.error().what;
    return;
  }
  run.kept = kept_seed_of(*text);
  run.can_grow = run.kept.has_value();
  if (run.can_grow) run.reach = run.kept->reach;
  if (!run.can_grow) run.cannot_grow = "what was kept of it is damaged";
}

/// The server before this one may have got no further than to commit who leaves.
void Controller::take_up_live(Entry& entry) {
  Job& job = entry.job;
  if (!may_resize(entry)) return;
  if (!entry.run->can_grow && !asks_a_cluster()) {
    note(job, job::Remark{"no worker can join it any more: its keys are not known (" +
                          entry.run->cannot_grow + ")"});
  }
  std::vector<std::string> leaving;
  for (const Task& task : job.tasks) {
    if (task.left && holds_room(task)) leaving.push_back(task.name);
  }
  show_size(entry);
  change(entry);
  say_goodbye(entry, leaving);
}

void Controller::end_attempt(Job& job) {
  parts_.engine.scrub(engine_gang(job));
  job.sealed_seed.clear();
}

}  // namespace muster::control
