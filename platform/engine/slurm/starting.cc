// Starts tasks: each muster-node is told to, and says whether its task is up. All of a start() come
// up or none is left; an order that never arrived is given again to a muster-node that calls anew.
#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "engine/engine_errors.h"
#include "engine/slurm/slurm_engine_impl.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using launch::TaskPlan;
using slurm::GangStart;
using slurm::Seat;
using slurm::Stage;
using slurm::StartOrder;

namespace {

bool has_kind(const TaskPlan& plan, job::Volume::Kind kind) {
  return std::any_of(plan.volumes.begin(), plan.volumes.end(),
                     [&](const job::Volume& volume) { return volume.kind == kind; });
}

}  // namespace

void SlurmEngine::Impl::start(const Gang& name, std::vector<TaskPlan> plans, Done done) {
  begin();
  auto start = std::make_shared<GangStart>();
  start->gang = name;
  start->done = std::move(done);
  const GangPointer gang = find(name);
  if (auto checked = check(gang, plans); !checked) {
    start->error = std::move(checked).error();
    return soon([this, start] { settle(start); });
  }
  const TaskPlan* const any = plans.empty() ? nullptr : &plans.front();
  start->waits_for_trees = any != nullptr && !trees.are_here(name.job_id, any->volumes);
  const std::string project = any != nullptr ? any->project : "";
  const auto volumes = any != nullptr ? any->volumes : std::vector<job::Volume>{};
  for (TaskPlan& plan : plans) {
    const TaskPointer task = gang->tasks.at(plan.task);
    task->start = start;
    start->tasks.insert(plan.task);
    start->unheard.insert(plan.task);
    start->plans[plan.task] = std::move(plan);
  }
  if (!start->waits_for_trees) return order_start(start);
  trees.unpack(name.job_id, project, volumes, [this, start](Result<void> unpacked) {
    start->waits_for_trees = false;
    if (start->done == nullptr || start->error) return settle(start);
    if (unpacked) return order_start(start);
    fail_start(start, start_error(*start->tasks.begin(), std::move(unpacked).error()));
  });
}

Result<void> SlurmEngine::Impl::check(const GangPointer& gang,
                                      const std::vector<TaskPlan>& plans) const {
  const Error gone{.code = ErrorCode::kUnavailable,
                   .what = "Slurm has no room for the job any more"};
  if (gang == nullptr || gang->record.taken || gang->record.given_back) return gone;
  if (gang->stage != Stage::kThere) return gone;
  for (const TaskPlan& plan : plans) {
    const TaskPointer task = find(gang->gang, plan.task);
    if (task == nullptr) {
      return start_error(
          plan.task, {.code = ErrorCode::kNotFound, .what = "no room was asked for it in Slurm"});
    }
    const Seat& seat = gang->seat_of(*task);
    std::error_code ignored;
    if (seat.started || fs::exists(folder_of(gang->gang, plan.task).path, ignored)) {
      return start_error(plan.task,
                         {.code = ErrorCode::kConflict,
                          .what = "task " + plan.task + " of this attempt was started before"});
    }
    if (!seat.shares_folder && has_kind(plan, job::Volume::Kind::kStorage)) {
      return start_error(
          plan.task,
          {.code = ErrorCode::kInvalid,
           .what = "node " + seat.node +
                   " does not see the server's folder, in which the storage "
                   "of projects lies",
           .advice = "let the server's folder lie where all nodes see it, or mount the data on the "
                     "nodes by --volume PATH:PATH"});
    }
  }
  return {};
}

void SlurmEngine::Impl::order_start(const std::shared_ptr<GangStart>& start) {
  const GangPointer gang = find(start->gang);
  if (gang == nullptr) {
    return fail_start(start, {.code = ErrorCode::kUnavailable, .what = "its room is gone"});
  }
  for (const auto& [name, plan] : start->plans) {
    Seat& seat = gang->seat_of(*gang->tasks.at(name));
    seat.started = true;
    seat.has_artifacts = has_kind(plan, job::Volume::Kind::kArtifacts);
  }
  if (auto made = base::make_private_folder(attempt_folder(start->gang)); !made) {
    return fail_start(start, std::move(made).error());
  }
  save(gang);  // before any is sent
  const auto names = start->tasks;
  for (const std::string& name : names) {
    const TaskPointer task = gang->tasks.at(name);
    const auto plan = start->plans.find(name);
    if (start->error || plan == start->plans.end()) continue;
    if (auto ordered = order_start(gang, plan->second); !ordered) {
      start->unheard.erase(name);
      fail_start(start, start_error(name, std::move(ordered).error()));
      continue;
    }
    if (task->line != nullptr) send_order(gang, task);
  }
  if (start->tasks.empty()) soon([this, start] { settle(start); });
}

/// What lies here of the task.
Result<void> SlurmEngine::Impl::order_start(const GangPointer& gang, const TaskPlan& plan) {
  const TaskPointer task = gang->tasks.at(plan.task);
  const Seat& seat = gang->seat_of(*task);
  if (seat.has_artifacts) {
    MUSTER_CHECK(base::make_private_folder(job_folder(gang->gang.job_id) / "artifacts"));
  }
  if (seat.shares_folder) return {};
  MUSTER_TRY(task->mirror, Mirror::open(folder_of(gang->gang, plan.task), options.log_quota));
  return {};
}

void SlurmEngine::Impl::send_order(const GangPointer& gang, const TaskPointer& task) {
  const auto start = task->start;
  const auto found = start->plans.find(task->name);
  if (found == start->plans.end() || start->error || start->waits_for_trees) return;
  const TaskPlan& plan = found->second;
  const Seat& seat = gang->seat_of(*task);
  StartOrder order{.attempt = gang->gang.attempt,
                   .plan = plan,
                   .programs = programs_on_nodes(),
                   .folder = folder_on_node(seat.shares_folder),
                   .storage = seat.shares_folder ? options.storage_folder.string() : "",
                   .is_shared = seat.shares_folder,
                   .log_quota = options.log_quota,
                   .first_sample_ms = static_cast<uint64_t>(options.first_sample.count()),
                   .sample_interval_ms = static_cast<uint64_t>(options.sample_interval.count())};
  for (const fs::path& path : options.hidden) order.hidden.push_back(path.string());
  order.trees.resize(plan.volumes.size());
  if (!seat.shares_folder) send_trees(gang, order);
  start->ordered.insert(task->name);
  task->line->send(order);
}

/// Its muster-node has never heard of the task.
void SlurmEngine::Impl::order_again(const GangPointer& gang, const TaskPointer& task) {
  const auto start = task->start;
  if (!start->error) return send_order(gang, task);
  start->unheard.erase(task->name);
  settle(start);
}

void SlurmEngine::Impl::send_trees(const GangPointer& gang, StartOrder& order) {
  for (size_t i = 0; i < order.plan.volumes.size(); ++i) {
    const job::Volume& volume = order.plan.volumes[i];
    if (volume.kind != job::Volume::Kind::kTree || volume.source.empty()) continue;
    const uint64_t stream = ++last_number;
    const fs::path tree = job_folder(gang->gang.job_id) / "trees" / std::to_string(i);
    order.trees[i] = stream;
    streams[stream] = [this, tree](Result<std::shared_ptr<slurm::NodeConnection>> line) {
      if (line) folder_sender.send(*std::move(line), tree);
    };
  }
}

// --- how it goes

void SlurmEngine::Impl::start_answered(const TaskPointer& task, const std::optional<Error>& error) {
  const auto start = task->start;
  if (!start || start->unheard.erase(task->name) == 0) return;
  start->plans.erase(task->name);  // there are secrets in it
  if (error) return fail_start(start, start_error(task->name, *error));
  task->up = true;
  settle(start);
}

/// What was ordered may be under way: it is told to end, and heard of, before nothing is left.
void SlurmEngine::Impl::fail_start(std::shared_ptr<GangStart> start, Error error) {
  if (start->done == nullptr) return;
  const bool is_first = !start->error;
  if (is_first) start->error = std::move(error);
  const GangPointer gang = find(start->gang);
  for (const std::string& name : start->tasks) {
    if (!is_first || gang == nullptr) break;
    const TaskPointer task = gang->tasks.at(name);
    if (start->ordered.count(name) == 0) {
      start->unheard.erase(name);
    } else if (!task->end && (task->up || start->unheard.count(name) > 0)) {
      task->stop_wish = StopMode::kNow;
      if (task->line != nullptr) task->line->send(slurm::StopOrder{StopMode::kNow});
    }
  }
  start->plans.clear();
  settle(start);
}

void SlurmEngine::Impl::settle(std::shared_ptr<GangStart> start) {
  if (start->done == nullptr || !start->unheard.empty()) return;
  if (!start->error) return start->waits_for_trees ? void() : succeeded(start);
  const GangPointer gang = find(start->gang);
  const bool some_run = gang != nullptr &&
                        std::any_of(start->tasks.begin(), start->tasks.end(),
                                    [&](const auto& name) { return gang->tasks.at(name)->runs(); });
  if (!some_run) undo(start);
}

/// Others of the gang may run, and these be started again.
void SlurmEngine::Impl::undo(const std::shared_ptr<GangStart>& start) {
  const auto done = std::exchange(start->done, nullptr);
  start->plans.clear();
  if (const GangPointer gang = find(start->gang)) {
    for (const std::string& name : start->tasks) {
      const TaskPointer task = gang->tasks.at(name);
      Seat& seat = gang->seat_of(*task);
      seat.started = false;
      task->start.reset();
      task->mirror.reset();
      task->up = task->answered = task->was_told_to_stop = task->holds_task = false;
      task->stop_wish.reset();
      task->end.reset();
      task->timer.reset();
      if (const auto removed = base::remove_tree(folder_of(start->gang, name).path); !removed) {
        base::log_error(removed.error().what);
      }
    }
    save(gang);
  }
  soon([done, error = *start->error] { done(error); });
}

void SlurmEngine::Impl::succeeded(const std::shared_ptr<GangStart>& start) {
  const auto done = std::exchange(start->done, nullptr);
  start->plans.clear();
  soon([this, start, done] {
    done({});
    const GangPointer gang = find(start->gang);
    if (gang == nullptr) return;
    for (const std::string& name : start->tasks) {
      const TaskPointer task = gang->tasks.at(name);
      task->start.reset();
      if (task->answered) answers(gang, task);
      if (task->end) {
        finish(gang, task);
      } else if (task->stop_wish && task->line != nullptr) {
        task->line->send(slurm::StopOrder{*task->stop_wish});
      }
    }
  });
}

/// All or none: who stops one task before its gang is there stops the start.
void SlurmEngine::Impl::stop_starting(const Gang& gang, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const TaskPointer task = find(gang, name);
    if (task == nullptr || !task->start || task->start->error) continue;
    if (task->start->done == nullptr) continue;
    const auto start = task->start;
    soon([this, start] {
      fail_start(start, {.code = ErrorCode::kUnavailable,
                         .what = "was stopped while it was being started"});
    });
  }
}

/// Nothing more is heard of it.
void SlurmEngine::Impl::give_up_start(const GangPointer& gang, Error error) {
  std::set<std::shared_ptr<GangStart>> starts;
  for (const auto& [name, task] : gang->tasks) {
    if (task->start && task->start->done != nullptr) starts.insert(task->start);
  }
  for (const auto& start : starts) {
    if (!start->error) start->error = error;
    undo(start);
  }
}

}  // namespace muster::engine
