#include "control/resizing.h"

#include <algorithm>
#include <utility>

#include "control/gang_tasks.h"
#include "control/retry.h"
#include "launch/elastic.h"

namespace muster::control {

using engine::StopMode;
using job::Job;
using job::Task;
using job::TaskPhase;
using job::TaskRole;

namespace {

constexpr int kMostLostSoon = 3;

/// The worker of this seat that was never started, or another worker; nullptr: the job has `most`
/// tasks already.
Task* worker_for_seat(Job& job, int seat, size_t most) {
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return task.seat == seat && task.node.empty() && !task.left && !task.started;
  });
  if (found != job.tasks.end()) return &*found;
  if (job.tasks.size() >= most) return nullptr;
  job.tasks.push_back(job::next_worker(job, seat));
  return &job.tasks.back();
}

/// Workers that are members or on their way.
int count_seated(const Job& job) {
  return static_cast<int>(std::count_if(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    const bool is_here = !task.node.empty() && !task.left && task.phase != TaskPhase::kEnded;
    return task.role == TaskRole::kWorker && is_here;
  }));
}

}  // namespace

void Setbacks::add_loss(const Task& lost) {
  in_a_row_ = lost_soon_.contains(lost.name) ? in_a_row_ + 1 : 0;
}

void Setbacks::wait() {
  const auto pause = backoff(in_a_row_ + 1, context_.services.pace.rest);
  if (pause <= std::chrono::milliseconds(0)) return;
  timer_ = context_.after(pause, [this] {
    timer_.reset();
    wait_is_over_();
  });
}

void Setbacks::note_loss(const Task& lost) {
  if (!launch::resizes_live(context_.job().spec) || lost.role != TaskRole::kWorker) return;
  const bool was_soon = lost.started && context_.services.clock.now() - *lost.started < kSoon;
  // The loss of a machine reveals nothing about the program.
  if (was_soon && context_.services.nodes.find(lost.node) != nullptr) lost_soon_.insert(lost.name);
}

bool Setbacks::are_too_many() const {
  return lost_soon_in_a_row(context_.job(), lost_soon_, context_.services.clock.now()) >=
         kMostLostSoon;
}

Resizing::Resizing(AttemptContext context, ImagesByTask& images, bool can_grow,
                   std::string cannot_grow, Hooks hooks)
    : context_(std::move(context)),
      hooks_(std::move(hooks)),
      updates_(context_, [this] { return may_resize(); }),
      joining_(context_, updates_, images, joining_hooks()),
      can_grow_(can_grow),
      cannot_grow_(std::move(cannot_grow)),
      setbacks_(context_, [this] { grow(); }) {}

Joining::Hooks Resizing::joining_hooks() {
  return {
      .may_resize = [this] { return may_resize(); },
      .is_ending = hooks_.is_ending,
      .worker_rejected = [this](Task& task, const std::string& why) { reject_worker(task, why); },
      .failed =
          [this](Task& task, const std::string& why) {
            if (!why.empty()) note_setback(task.name + " could not join: " + why);
            has_left(task);
            hooks_.finish_if_over();
          },
      .timed_out =
          [this](Task& task, const std::string& why) {
            note_setback(task.name + " could not join: " + why);
          },
      .unfit_node =
          [this](const std::string& node) {
            unfit_nodes_.push_back(node);
            asks_for_less_ = true;
          }};
}

bool Resizing::may_resize() const {
  const Job& job = context_.job();
  return job.phase == job::Phase::kRunning && !hooks_.is_ending() && !job.eviction &&
         !job.stop_requested && launch::resizes_live(job.spec);
}

void Resizing::show_size() {
  if (may_resize()) context_.job().reason = hooks_.running_reason();
}

// --- growing

void Resizing::offer(const schedule::PlannedStart& start) {
  if (!launch::resizes_live(context_.job().spec)) return;
  for (size_t i = 0; i < start.tasks.size(); ++i) offers_[start.tasks[i]] = start.places[i];
  grow();
}

void Resizing::grow() {
  const bool can_grow = can_grow_ && joining_.has_seed();
  if (!may_resize() || !can_grow || setbacks_.is_waiting() || offers_.empty()) return;
  Job& job = context_.job();
  const size_t most_joiners = context_.services.pace.most_joiners;
  const size_t most = job::tasks_of(job.spec).size() + most_joiners;
  std::vector<std::string> names;
  for (const auto& [seat, place] : std::exchange(offers_, {})) {
    Task* const task = worker_for_seat(job, seat, most);
    if (task == nullptr) {
      offers_[seat] = place;
      continue;
    }
    assign_place(*task, place);
    joining_.admit(task->name);
    names.push_back(task->name);
    context_.note(job::WorkerJoins{
        .task = task->name, .node = task->node, .now = workers_of(job, count_seated(job))});
  }
  if (!offers_.empty()) {
    // Later: the plan that made these offers is still being carried out.
    context_.soon([this, most_joiners] {
      stop_growing(std::to_string(most_joiners) + " have joined it since its start");
    });
  }
  if (names.empty()) return;
  context_.change();
  context_.once_committed([this, names] {
    for (const std::string& name : names) joining_.begin(name);
  });
}

bool Resizing::worker_answers(const Task& task) {
  if (!joining_.end(task.name)) return false;
  const Job& job = context_.job();
  context_.note(job::WorkerJoins{.task = task.name, .now = workers_of(job, count_members(job))});
  show_size();
  context_.change();
  joining_.add_catch_up(task.name);
  updates_.add_member_list({});
  return true;
}

bool Resizing::reject_unstarted(Task& task, const std::string& why) {
  if (!joining_.is_joining(task.name) || joining_.was_started(task.name)) return false;
  reject_worker(task, why);
  return true;
}

void Resizing::reject_worker(Task& task, const std::string& why) {
  joining_.end(task.name);
  clear_place(task);
  drop_prepared(task);
  if (may_resize()) note_setback(task.name + " could not join: " + why);
  give_back({task.seat});
}

void Resizing::note_setback(const std::string& what) {
  const Job& job = context_.job();
  setbacks_.add();
  // More workers may have left while this one was counted on.
  const bool goes_on = can_do_without({});
  job::WorkerDidNotJoin fact{.what = what};
  if (goes_on) fact.left = workers_of(job, count_members(job));
  context_.note(std::move(fact));
  context_.change();
  if (goes_on) return setbacks_.wait();
  hooks_.evict_all(job::TooFewWorkers{least_workers(job.spec)});
}

/// For the rest of the attempt. Its members continue, and it can still shrink.
void Resizing::stop_growing(const std::string& why) {
  if (!std::exchange(can_grow_, false)) return;
  cannot_grow_ = why;
  context_.note(job::Remark{"no more workers can join: " + why});
  context_.change();
  std::vector<int> seats;
  for (const auto& [seat, place] : std::exchange(offers_, {})) seats.push_back(seat);
  give_back(seats);
}

/// The places of workers that were not started stay with the gang. Workers that were started end as
/// any other task does.
void Resizing::end_all_joining() {
  for (Task* const task : joining_.end_all()) {
    offers_[task->seat] = place_of(*task);
    clear_place(*task);
  }
}

// --- shrinking

/// A worker on its way counts as a member, as it does for the scheduler.
bool Resizing::can_do_without(const std::vector<int>& seats) const {
  const auto goes = [&](int seat) {
    return std::find(seats.begin(), seats.end(), seat) != seats.end();
  };
  int staying = 0;
  for (const Task& task : context_.job().tasks) {
    if (task.node.empty() || task.left) continue;
    const bool is_worker = task.role == TaskRole::kWorker;
    if (goes(task.seat) && !is_worker) return false;
    staying += is_worker && !goes(task.seat);
  }
  for (const auto& [seat, place] : offers_) staying += !goes(seat);
  return staying >= least_workers(context_.job().spec);
}

bool Resizing::shrink(const std::vector<int>& seats, const job::Eviction& why) {
  if (!may_resize() || !can_do_without(seats)) return false;
  Job& job = context_.job();
  std::vector<std::string> leaving;
  std::vector<std::string> starting;
  for (const int seat : seats) {
    const Task* const task = leave_seat(seat);
    if (task == nullptr) continue;
    leaving.push_back(task->name);
    if (task->phase == TaskPhase::kStarting) starting.push_back(task->name);
  }
  if (!leaving.empty()) {
    context_.note(job::WorkersLeave{
        .tasks = leaving, .why = why, .left = workers_of(job, count_members(job))});
    show_size();
    context_.change();
    context_.once_committed([this, leaving, starting] {
      // The other members have not been given these workers yet. The notice to the members may have
      // to wait until their start is over.
      stop_leaving(starting);
      announce_leaving(leaving);
    });
  }
  std::vector<int> free = seats;
  std::erase_if(free, [&](int seat) {
    return std::any_of(job.tasks.begin(), job.tasks.end(),
                       [&](const Task& task) { return task.seat == seat && holds_place(task); });
  });
  give_back(free);
  return true;
}

/// The task in the seat, which has to leave; nullptr: the other tasks were not given such a task.
const Task* Resizing::leave_seat(int seat) {
  offers_.erase(seat);
  Task* const task = task_in_seat(context_.job(), seat);
  if (task == nullptr) return nullptr;
  const bool was_started = joining_.was_started(task->name);
  if (joining_.end(task->name) && !was_started) {
    clear_place(*task);
    drop_prepared(*task);
  } else {
    task->left = true;
  }
  return task;
}

/// The engine may hold resources for a worker that it has prepared: in Kubernetes, its pod. The next
/// worker in the seat has the same name, and perhaps another node.
void Resizing::drop_prepared(const Task& task) {
  context_.services.engine.stop(context_.gang(), {task.name}, StopMode::kNow);
}

void Resizing::announce_leaving(const std::vector<std::string>& leaving) {
  updates_.add_member_list([this, leaving](bool any_updated) {
    const auto notice = context_.services.pace.notice;
    if (any_updated && notice > std::chrono::milliseconds(0)) {
      notices_.push_back(context_.after(notice, [this, leaving] { stop_leaving(leaving); }));
    } else {
      context_.soon([this, leaving] { stop_leaving(leaving); });
    }
  });
}

void Resizing::stop_leaving(const std::vector<std::string>& leaving) {
  std::vector<std::string> live = live_tasks(context_.job());
  std::erase_if(live, [&](const std::string& name) {
    return std::find(leaving.begin(), leaving.end(), name) == leaving.end();
  });
  if (live.empty()) return;
  context_.services.engine.stop(context_.gang(), live, StopMode::kGraceful);
}

void Resizing::has_left(const Task& task) {
  context_.change();
  give_back({task.seat});
}

void Resizing::give_back(const std::vector<int>& seats) {
  if (seats.empty()) return;
  context_.services.book.free_seats(context_.job().id, seats);
  release_unused();
  hooks_.wake();
}

void Resizing::release_unused() {
  Job& job = context_.job();
  const bool some_leave = std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    return task.left && holds_place(task);
  });
  if (some_leave) return;
  // An attempt that the scheduler has evicted may start again on places that it did not use.
  const bool ends_for_good = hooks_.is_ending() && hooks_.keeps_no_places() &&
                             launch::resizes_live(job.spec) && context_.services.cluster.empty();
  if (ends_for_good) {
    can_grow_ = false;
  } else if (!may_resize()) {
    return;
  }
  if (!std::exchange(asks_for_less_, false) && can_grow_) return;
  offers_.clear();
  if (!can_grow_) renumber_seats(job);
  hooks_.reshape();
}

void Resizing::release_offers_on(const std::string& node) {
  std::vector<int> seats;
  for (const auto& [seat, place] : offers_) {
    if (place.node == node) seats.push_back(seat);
  }
  for (const int seat : seats) offers_.erase(seat);
  give_back(seats);
}

// --- losses

bool Resizing::goes_on_without(const Task& lost) const {
  const Job& job = context_.job();
  if (!may_resize() || lost.role != TaskRole::kWorker || falls_over()) return false;
  const auto others = std::count_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    const bool is_another = task.role == TaskRole::kWorker && !task.left && task.name != lost.name;
    const bool has_succeeded = task.phase == TaskPhase::kEnded && !is_loss(job, task);
    return is_another && (task.phase == TaskPhase::kRunning || has_succeeded);
  });
  return others >= least_workers(job.spec);
}

bool Resizing::absorb_loss(Task& task, bool was_joining) {
  setbacks_.note_loss(task);
  if (was_joining && may_resize() && !falls_over()) {
    task.left = true;
    note_setback(task.name + " could not join: it " + job::explain(*task.exit));
    has_left(task);
    return true;
  }
  if (!goes_on_without(task)) return false;
  const Job& job = context_.job();
  task.left = true;
  context_.note(job::WorkerLost{
      .task = task.name, .exit = *task.exit, .left = workers_of(job, count_members(job))});
  show_size();
  context_.change();
  updates_.add_member_list({});
  setbacks_.add_loss(task);
  setbacks_.wait();
  give_back({task.seat});
  return true;
}

// --- restarts of the server

void Resizing::keep_seed(const KeptSeed& kept) {
  joining_.set_seed(kept);
  context_.services.planner.keep(context_.job(), kept);
}

/// Without the seed the gang can still shrink.
void Resizing::find_seed() {
  const auto kept = context_.services.planner.kept_seed(context_.job());
  can_grow_ = static_cast<bool>(kept);
  if (can_grow_) {
    joining_.set_seed(*kept);
  } else {
    cannot_grow_ = "the keys of the job are not available (" + kept.error().what + ")";
  }
}

void Resizing::resume() {
  const Job& job = context_.job();
  if (!may_resize()) return;
  if (!can_grow_ && context_.services.cluster.empty()) {
    context_.note(job::Remark{"no more workers can join: " + cannot_grow_});
  }
  std::vector<std::string> leaving;
  for (const Task& task : job.tasks) {
    if (task.left && holds_place(task)) leaving.push_back(task.name);
  }
  show_size();
  context_.change();
  announce_leaving(leaving);
}

}  // namespace muster::control
