#include "engine/lent/gang_start.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/engine_errors.h"

namespace muster::engine::lent {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using launch::TaskPlan;
using node::StartOrder;

namespace {

bool has_kind(const TaskPlan& plan, job::Volume::Kind kind) {
  return std::any_of(plan.volumes.begin(), plan.volumes.end(),
                     [&](const job::Volume& volume) { return volume.kind == kind; });
}

}  // namespace

void GangStarter::start(const GangId& gang, std::vector<TaskPlan> plans, Engine::Done done,
                        std::vector<std::pair<std::string, std::string>> hosts) {
  auto start = std::make_shared<GangStart>();
  start->gang = gang;
  start->hosts = std::move(hosts);
  start->done = std::move(done);
  const std::weak_ptr<GangStart> weak = start;
  start->on_answer = [this, weak](const TaskPointer& task, const std::optional<Error>& error) {
    if (const auto still = weak.lock()) answered(still, task, error);
  };
  start->on_end = [this, weak] {
    if (const auto still = weak.lock()) settle(still);
  };
  const GangPointer held = gangs_.find(gang);
  if (auto checked = check(held, plans); !checked) {
    start->error = std::move(checked).error();
    return reports_.post([this, start] { settle(start); });
  }
  const TaskPlan* const any = plans.empty() ? nullptr : &plans.front();
  start->waits_for_trees = any != nullptr && !trees_.are_here(gang.job_id, any->volumes);
  const std::string project = any != nullptr ? any->project : "";
  const auto volumes = any != nullptr ? any->volumes : std::vector<job::Volume>{};
  for (TaskPlan& plan : plans) {
    const TaskPointer task = held->tasks.at(plan.task);
    task->start = start;
    start->tasks.insert(plan.task);
    start->unanswered.insert(plan.task);
    start->plans[plan.task] = std::move(plan);
  }
  if (!start->waits_for_trees) return order_all(start);
  trees_.unpack(gang.job_id, project, volumes, [this, start](Result<void> unpacked) {
    start->waits_for_trees = false;
    if (start->done == nullptr || start->error) return settle(start);
    if (unpacked) return order_all(start);
    fail(start, start_error(*start->tasks.begin(), std::move(unpacked).error()));
  });
}

Result<void> GangStarter::check(const GangPointer& gang, const std::vector<TaskPlan>& plans) const {
  const Error gone{.code = ErrorCode::kUnavailable,
                   .what = "the job has no allocation in " + lender_.cluster + " any more"};
  if (gang == nullptr || gang->record.taken || gang->record.given_back) return gone;
  if (!lender_.has_allocation(gang)) return gone;
  for (const TaskPlan& plan : plans) {
    const TaskPointer task = gangs_.find(gang->gang, plan.task);
    if (task == nullptr) {
      return start_error(plan.task, {.code = ErrorCode::kNotFound,
                                     .what = "its allocation was requested without this task"});
    }
    const Seat& seat = gang->seat_of(*task);
    std::error_code ignored;
    if (seat.started || fs::exists(gangs_.folder_of(gang->gang, plan.task).path, ignored)) {
      return start_error(plan.task,
                         {.code = ErrorCode::kConflict,
                          .what = "task " + plan.task + " of this attempt was started before"});
    }
    const bool sees_storage = seat.shares_folder || options_.mounts_storage;
    if (!sees_storage && has_kind(plan, job::Volume::Kind::kStorage)) {
      return start_error(
          plan.task,
          {.code = ErrorCode::kInvalid,
           .what = "node " + seat.node +
                   " does not see the server's folder, which contains the storage of projects",
           .advice = "put the server's folder on a file system that all nodes mount, or mount the "
                     "data on the nodes and use --volume PATH:PATH"});
    }
  }
  return {};
}

void GangStarter::order_all(const StartPointer& start) {
  const GangPointer gang = gangs_.find(start->gang);
  if (gang == nullptr) {
    return fail(start, {.code = ErrorCode::kUnavailable, .what = "its allocation is gone"});
  }
  for (const auto& [name, plan] : start->plans) {
    Seat& seat = gang->seat_of(*gang->tasks.at(name));
    seat.started = true;
    seat.has_artifacts = has_kind(plan, job::Volume::Kind::kArtifacts);
  }
  if (auto made = base::make_private_folder(gangs_.attempt_folder(start->gang)); !made) {
    return fail(start, std::move(made).error());
  }
  gangs_.save(gang);  // before any order is sent
  const auto names = start->tasks;
  for (const std::string& name : names) {
    const TaskPointer task = gang->tasks.at(name);
    const auto plan = start->plans.find(name);
    if (start->error || plan == start->plans.end()) continue;
    if (auto prepared = prepare(gang, plan->second); !prepared) {
      start->unanswered.erase(name);
      fail(start, start_error(name, std::move(prepared).error()));
      continue;
    }
    if (task->line != nullptr) send_order(gang, task);
  }
  if (start->tasks.empty()) reports_.post([this, start] { settle(start); });
}

/// Makes the task's folders on this machine.
Result<void> GangStarter::prepare(const GangPointer& gang, const TaskPlan& plan) {
  const TaskPointer task = gang->tasks.at(plan.task);
  const Seat& seat = gang->seat_of(*task);
  if (seat.has_artifacts) {
    MUSTER_CHECK(base::make_private_folder(gangs_.job_folder(gang->gang.job_id) / "artifacts"));
  }
  if (seat.shares_folder) return {};
  MUSTER_TRY(task->mirror,
             Mirror::open(gangs_.folder_of(gang->gang, plan.task), options_.log_quota));
  return {};
}

void GangStarter::send_order(const GangPointer& gang, const TaskPointer& task) {
  const auto start = task->start;
  const auto found = start->plans.find(task->name);
  if (found == start->plans.end() || start->error || start->waits_for_trees) return;
  const TaskPlan& plan = found->second;
  const Seat& seat = gang->seat_of(*task);
  StartOrder order{.attempt = gang->gang.attempt,
                   .start = seat.start,
                   .plan = plan,
                   .programs = options_.programs_on_nodes,
                   .folder = options_.folder_on_node(seat.shares_folder),
                   .storage = seat.shares_folder ? options_.storage_folder.string() : "",
                   .is_shared = seat.shares_folder,
                   .log_quota = options_.log_quota,
                   .limits = options_.limits,
                   .first_sample_ms = static_cast<uint64_t>(options_.first_sample.count()),
                   .sample_interval_ms = static_cast<uint64_t>(options_.sample_interval.count())};
  if (!start->hosts.empty()) order.plan.hosts = start->hosts;
  order.filter = options_.filter;
  for (const fs::path& path : options_.hidden) order.hidden.push_back(path.string());
  order.trees.resize(plan.volumes.size());
  if (!seat.shares_folder) expect_trees(gang, order);
  start->ordered.insert(task->name);
  orders_.send_now(gang, task, order);
}

void GangStarter::order_again(const GangPointer& gang, const TaskPointer& task) {
  const auto start = task->start;
  if (!start->error) return send_order(gang, task);
  start->unanswered.erase(task->name);
  settle(start);
}

void GangStarter::expect_trees(const GangPointer& gang, StartOrder& order) {
  for (size_t i = 0; i < order.plan.volumes.size(); ++i) {
    const job::Volume& volume = order.plan.volumes[i];
    if (volume.kind != job::Volume::Kind::kTree || volume.source.empty()) continue;
    order.trees[i] = orders_.expect_sending(
        gang->gang.job_id, gangs_.job_folder(gang->gang.job_id) / "trees" / std::to_string(i));
  }
}

// --- how the start goes

void GangStarter::answered(const StartPointer& start, const TaskPointer& task,
                           const std::optional<Error>& error) {
  if (start->unanswered.erase(task->name) == 0) return;
  start->plans.erase(task->name);  // it contains secrets
  if (error) return fail(start, start_error(task->name, *error));
  task->up = true;
  settle(start);
}

/// Ordered tasks may be starting: they are stopped, and the start settles once all have answered.
void GangStarter::fail(const StartPointer& start, Error error) {
  if (start->done == nullptr) return;
  const bool is_first = !start->error;
  if (is_first) start->error = std::move(error);
  const GangPointer gang = gangs_.find(start->gang);
  for (const std::string& name : start->tasks) {
    if (!is_first || gang == nullptr) break;
    const TaskPointer task = gang->tasks.at(name);
    if (start->ordered.count(name) == 0) {
      start->unanswered.erase(name);
    } else if (!task->end && (task->up || start->unanswered.count(name) > 0)) {
      task->pending_stop = StopMode::kNow;
      if (task->line != nullptr) task->line->send(node::StopOrder{StopMode::kNow});
    }
  }
  start->plans.clear();
  settle(start);
}

void GangStarter::settle(const StartPointer& start) {
  if (start->done == nullptr || !start->unanswered.empty()) return;
  if (!start->error) return start->waits_for_trees ? void() : succeed(start);
  const GangPointer gang = gangs_.find(start->gang);
  const bool some_run = gang != nullptr &&
                        std::any_of(start->tasks.begin(), start->tasks.end(),
                                    [&](const auto& name) { return gang->tasks.at(name)->runs(); });
  if (!some_run) undo(start);
}

/// Resets the tasks, which may be started again: other tasks of the gang may be running.
void GangStarter::undo(const StartPointer& start) {
  const auto done = std::exchange(start->done, nullptr);
  start->plans.clear();
  if (const GangPointer gang = gangs_.find(start->gang)) {
    for (const std::string& name : start->tasks) {
      const TaskPointer task = gang->tasks.at(name);
      Seat& seat = gang->seat_of(*task);
      if (seat.started) ++seat.start;
      seat.started = false;
      task->start.reset();
      task->mirror.reset();
      task->up = task->answered = task->stop_requested = task->holds_task = false;
      task->pending_stop.reset();
      task->end.reset();
      task->timer.reset();
      const auto removed = base::remove_tree(gangs_.folder_of(start->gang, name).path);
      if (!removed) base::log_error(removed.error().what);
    }
    gangs_.save(gang);
  }
  reports_.post([done, error = *start->error] { done(error); });
}

void GangStarter::succeed(const StartPointer& start) {
  const auto done = std::exchange(start->done, nullptr);
  start->plans.clear();
  reports_.post([this, start, done] {
    // First, because done() may stop the tasks, and a task of an unsettled start ignores a stop.
    if (const GangPointer gang = gangs_.find(start->gang)) {
      for (const std::string& name : start->tasks) {
        tasks_.start_settled(gang, gang->tasks.at(name));
      }
    }
    done({});
  });
}

void GangStarter::stop(const GangId& gang, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const TaskPointer task = gangs_.find(gang, name);
    if (task == nullptr || !task->start || task->start->error) continue;
    if (task->start->done == nullptr) continue;
    reports_.post([this, start = task->start] {
      fail(start,
           {.code = ErrorCode::kUnavailable, .what = "was stopped while it was being started"});
    });
  }
}

void GangStarter::give_up(const GangPointer& gang, const Error& error) {
  std::set<StartPointer> starts;
  for (const auto& [name, task] : gang->tasks) {
    if (task->start && task->start->done != nullptr) starts.insert(task->start);
  }
  for (const auto& start : starts) {
    if (!start->error) start->error = error;
    undo(start);
  }
}

}  // namespace muster::engine::lent
