#include "control/joining.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "control/gang_tasks.h"

namespace muster::control {

using engine::StopMode;
using job::Job;
using job::Task;
using job::TaskPhase;

// --- files of running tasks

void MemberUpdates::add(Step step) {
  steps_.push_back(std::move(step));
  next();
}

void MemberUpdates::next() {
  if (steps_.empty() || std::exchange(step_under_way_, true)) return;
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  step(context_.guarded([this] {
    step_under_way_ = false;
    next();
  }));
}

void MemberUpdates::change_files(std::vector<launch::FileChange> changes,
                                 std::function<void(const Result<void>&)> then) {
  if (changes.empty()) return then({});
  context_.services.engine.change_files(context_.gang(), std::move(changes),
                                        context_.guarded(std::move(then)));
}

void MemberUpdates::add_member_list(std::function<void(bool any_updated)> then) {
  add([this, then = std::move(then)](const std::function<void()>& done) {
    const auto finish = [this, then, done](const Result<void>& result, bool any_updated) {
      if (!result) {
        context_.note(job::Remark{"the list of members could not be sent to its workers: " +
                                  result.error().what});
        context_.change();
      }
      if (then) then(any_updated);
      done();
    };
    if (!may_resize_()) return finish({}, false);
    const Job& job = context_.job();
    auto changes = launch::plan_membership(job, members_of(job));
    if (!changes) return finish(changes.error(), false);
    const bool any_updated = !changes->empty();
    change_files(*std::move(changes), [finish, any_updated](const Result<void>& result) {
      finish(result, any_updated);
    });
  });
}

// --- workers that join

bool Joining::was_started(const std::string& worker) const {
  const auto joiner = joiners_.find(worker);
  return joiner != joiners_.end() && joiner->second.is_started;
}

std::vector<Task*> Joining::end_all() {
  std::vector<Task*> not_started;
  for (const auto& [name, joiner] : std::exchange(joiners_, {})) {
    if (!joiner.is_started) not_started.push_back(find_task(context_.job(), name));
  }
  return not_started;
}

void Joining::begin(const std::string& worker) {
  if (!is_joining(worker)) return;
  Task& task = *find_task(context_.job(), worker);
  if (!context_.services.book.still_has({place_of(task)})) {
    return hooks_.worker_rejected(task, "its node has changed");
  }
  if (context_.services.engine.runs_images()) return fetch_image(task);
  add_start(worker);
}

/// Fetches the image of the worker. After a restart of the server, the facts about the images of
/// the members are read again, too.
void Joining::fetch_image(const Task& worker) {
  Job& job = context_.job();
  std::vector<const Task*> tasks{&worker};
  for (const Task& task : job.tasks) {
    const bool is_known = images_.contains(task.name) || is_joining(task.name);
    if (!task.node.empty() && !task.left && !is_known) tasks.push_back(&task);
  }
  const std::string name = worker.name;
  auto requests = context_.services.planner.images_of(job, tasks);
  if (!requests) return hooks_.worker_rejected(*find_task(job, name), requests.error().what);
  std::vector<std::string> names = tasks_of(*requests);
  joiners_.at(name).fetch = context_.services.engine.prepare(
      context_.gang(), *std::move(requests), [](const job::Fact&) {},
      context_.guarded([this, name, names](Result<std::vector<launch::ImageFacts>> facts) {
        image_fetched(name, names, std::move(facts));
      }));
}

void Joining::image_fetched(const std::string& worker, const std::vector<std::string>& tasks,
                            Result<std::vector<launch::ImageFacts>> facts) {
  const auto joiner = joiners_.find(worker);
  if (joiner == joiners_.end()) return;
  const auto caller = std::move(joiner->second.fetch);
  const auto kept = keep_facts(std::move(facts), tasks, images_);
  if (kept) return add_start(worker);
  ++context_.services.metrics.engine_errors;
  hooks_.worker_rejected(*find_task(context_.job(), worker), kept.error().what);
}

void Joining::add_start(const std::string& worker) {
  updates_.add([this, worker](const std::function<void()>& done) { start(worker, done); });
}

void Joining::start(const std::string& worker, const std::function<void()>& done) {
  const auto joiner = joiners_.find(worker);
  if (joiner == joiners_.end() || !hooks_.may_resize()) return done();
  // A worker that was sent away and admitted again has a later step.
  if (joiner->second.fetch || joiner->second.is_started) return done();
  const Job& job = context_.job();
  auto growth = context_.services.planner.plan_growth(job, {worker}, *seed_, images_);
  if (!growth) {
    Task& task = *find_task(context_.job(), worker);
    if (growth.error().code == base::ErrorCode::kRefused) hooks_.unfit_node(task.node);
    hooks_.worker_rejected(task, growth.error().what);
    return done();
  }
  updates_.change_files(std::move(growth->before), [this, worker, number = joiner->second.number,
                                                    plans = std::move(growth->joining),
                                                    done](const Result<void>& updated) {
    // A worker that was sent away and admitted again has a later step.
    const auto still = joiners_.find(worker);
    const bool is_same = still != joiners_.end() && still->second.number == number;
    if (!is_same || !hooks_.may_resize()) return done();
    if (updated) return launch(worker, plans, done);
    hooks_.worker_rejected(*find_task(context_.job(), worker),
                           "the other tasks could not be updated: " + updated.error().what);
    done();
  });
}

void Joining::launch(const std::string& worker, std::vector<launch::TaskPlan> plans,
                     std::function<void()> done) {
  Task& task = *find_task(context_.job(), worker);
  task.phase = TaskPhase::kStarting;
  task.started = context_.services.clock.now();
  joiners_.at(worker).is_started = true;
  context_.change();
  context_.services.engine.start(
      context_.gang(), std::move(plans),
      context_.guarded([this, worker, done = std::move(done)](const Result<void>& result) {
        started(worker, result);
        done();
      }));
}

void Joining::started(const std::string& worker, const Result<void>& result) {
  Task& task = *find_task(context_.job(), worker);
  if (!result) {
    ++context_.services.metrics.engine_errors;
    if (task.phase == TaskPhase::kEnded) return;
    // The engine has used the name, and starts no other task under it.
    task.phase = TaskPhase::kEnded;
    task.ended = context_.services.clock.now();
    const bool was_member = !task.left && hooks_.may_resize();
    task.left = true;
    end(worker);
    return hooks_.failed(task, was_member ? result.error().what : "");
  }
  // The worker was stopped while the engine started it.
  if (task.left || hooks_.is_ending()) {
    return context_.services.engine.stop(context_.gang(), {worker}, StopMode::kNow);
  }
  const auto joiner = joiners_.find(worker);
  if (joiner == joiners_.end()) return;  // it answers already
  joiner->second.answer_timer =
      context_.after(context_.job().spec.start_timeout, [this, worker] { give_up(worker); });
}

void Joining::give_up(const std::string& worker) {
  if (!end(worker) || !hooks_.may_resize()) return;
  Task& task = *find_task(context_.job(), worker);
  task.left = true;
  hooks_.timed_out(
      task, "it did not answer within " + base::format_duration(context_.job().spec.start_timeout));
  context_.services.engine.stop(context_.gang(), {worker}, StopMode::kNow);
}

void Joining::add_catch_up(const std::string& worker) {
  updates_.add([this, worker](const std::function<void()>& done) {
    if (!hooks_.may_resize()) return done();
    std::vector<launch::FileChange> changes;
    if (auto growth = context_.services.planner.plan_growth(context_.job(), {}, *seed_, images_)) {
      changes = std::move(growth->before);
    }
    std::erase_if(changes, [&](const launch::FileChange& change) { return change.task != worker; });
    // A member that does not learn of a later worker still takes part.
    updates_.change_files(std::move(changes), [done](const Result<void>&) { done(); });
  });
}

}  // namespace muster::control
