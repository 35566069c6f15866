// The end of a task: told to it, heard of it, or found out because what it ran in is gone. Its
// artifacts are fetched where they are not here, its muster-node is told to leave, and then the end
// is reported.
//
// A task that Slurm has stopped waits with its end until Slurm says why: the reason is told first.
#include <signal.h>

#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "engine/engine_errors.h"
#include "engine/slurm/slurm_engine_impl.h"
#include "engine/task_folder_reading.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using slurm::Seat;

namespace {

/// Slurm ends a job within its KillWait (30 s) and some seconds, and says so then.
constexpr std::chrono::seconds kReason{60};
/// For a muster-node to remove what is on its node.
constexpr std::chrono::seconds kRemoval{10};
constexpr int64_t kMostArtifacts = int64_t{64} << 30;

/// For Slurm's books: a task that was stopped, or is lost, has not failed by itself.
int farewell_code(const TaskEnded& end) {
  const bool by_itself = !end.status.stopped && !end.status.lost;
  return by_itself ? end.status.shell_code() : 0;
}

}  // namespace

void SlurmEngine::Impl::stop(const Gang& name, const std::vector<std::string>& names,
                             StopMode mode) {
  stop_starting(name, names);
  const GangPointer gang = find(name);
  if (gang == nullptr) return;
  for (const std::string& each : names) {
    const TaskPointer task = find(name, each);
    if (task == nullptr || task->start || task->end || !gang->seat_of(*task).started) continue;
    task->was_told_to_stop = true;
    const bool is_milder = task->stop_wish == StopMode::kNow && mode == StopMode::kGraceful;
    if (!is_milder) task->stop_wish = mode;
    if (task->line != nullptr) task->line->send(slurm::StopOrder{mode});
  }
}

void SlurmEngine::Impl::ended(const GangPointer& gang, const TaskPointer& task, TaskEnded end) {
  if (task->end) {
    // It is told anew by a muster-node that was not told to leave.
    if (task->is_reported) farewell(gang, task);
    return;
  }
  task->timer.reset();
  task->end = std::move(end);
  suspect_slurm(task);
  nothing_more_of(task);
  something_changed();
  if (const auto start = task->start) return settle(start);
  finish(gang, task);
}

void SlurmEngine::Impl::nothing_more_of(const TaskPointer& task) {
  task->orders.clear();
  fail_changes(task);
  fail_streams(task);
  log_has_grown(task);
  for (auto& over : std::exchange(task->when_over, {})) soon(std::move(over));
}

/// The tasks of a gang share a folder on each node: the last of them there brings it.
void SlurmEngine::Impl::finish(const GangPointer& gang, const TaskPointer& task) {
  const Seat& seat = gang->seat_of(*task);
  const bool others = std::any_of(gang->tasks.begin(), gang->tasks.end(), [&](const auto& each) {
    const slurm::HeldTask& other = *each.second;
    const Seat& place = gang->seat_of(other);
    return &other != task.get() && place.node == seat.node && place.started && !other.end;
  });
  const bool fetches =
      seat.has_artifacts && !seat.shares_folder && !others && task->line != nullptr && !seat.left;
  if (fetches) return fetch_artifacts(gang, task);
  leave(gang, task);
}

/// Where the folder is the node's own there are secrets in it until its muster-node has removed it,
/// which hangs up then; and the end of a task says that nothing is left.
void SlurmEngine::Impl::leave(const GangPointer& gang, const TaskPointer& task) {
  farewell(gang, task);
  if (gang->seat_of(*task).shares_folder || task->line == nullptr) return tell_end(gang, task);
  task->is_leaving = true;
  task->timer =
      loop.after(kRemoval, [this, weak_gang = std::weak_ptr(gang), weak = std::weak_ptr(task)] {
        const auto its_gang = weak_gang.lock();
        const auto still = weak.lock();
        if (its_gang && still) tell_end(its_gang, still);
      });
}

void SlurmEngine::Impl::fetch_artifacts(const GangPointer& gang, const TaskPointer& task) {
  const uint64_t stream = ++last_number;
  const auto done = [this, gang, weak = std::weak_ptr(task)](const Result<void>& fetched) {
    const TaskPointer still = weak.lock();
    if (still == nullptr || !std::exchange(still->fetches, false)) return;
    if (!fetched) {
      const std::string what = "its artifacts could not be fetched: " + fetched.error().what;
      base::log_error("task " + still->name + " of job " + gang->gang.job_id + ": " + what);
      std::string& said = still->end->status.error;
      said += (said.empty() ? "" : "; ") + what;
    }
    leave(gang, still);
  };
  const auto folder = job_folder(gang->gang.job_id) / "artifacts";
  streams[stream] = [this, weak = std::weak_ptr(task), folder,
                     done](Result<std::shared_ptr<slurm::NodeConnection>> line) {
    const TaskPointer still = weak.lock();
    if (still == nullptr) return;
    if (!line) return done(std::move(line).error());
    folder_receiver.receive(*std::move(line), folder, kMostArtifacts, done);
  };
  task->fetches = true;
  task->line->send(slurm::ArtifactsOrder{.stream = stream});
  task->timer = loop.after(options.linger, [done] {
    done(Error{.code = ErrorCode::kTimeout, .what = "its node does not send them"});
  });
}

void SlurmEngine::Impl::farewell(const GangPointer& gang, const TaskPointer& task) {
  Seat& seat = gang->seat_of(*task);
  if (!std::exchange(seat.left, true)) save_soon(gang);
  if (task->line == nullptr) return;
  task->line->send(slurm::Farewell{.code = task->end ? farewell_code(*task->end) : 0});
}

void SlurmEngine::Impl::tell_end(const GangPointer& gang, const TaskPointer& task) {
  if (task->is_reported || !task->end) return;
  if (slurm::was_ended_by_slurm(*task) && !gang->record.taken) {
    wait_for_reason(gang, task);
    return poll_soon();
  }
  task->is_reported = true;
  task->timer.reset();
  TaskEnded end = *task->end;
  end.status.stopped = end.status.stopped || task->was_told_to_stop;
  report(gang->gang, task->name, std::move(end));
}

void SlurmEngine::Impl::wait_for_reason(const GangPointer& gang, const TaskPointer& task) {
  task->timer =
      loop.after(kReason, [this, weak_gang = std::weak_ptr(gang), weak = std::weak_ptr(task)] {
        const auto its_gang = weak_gang.lock();
        const auto still = weak.lock();
        if (!its_gang || !still) return;
        // A step that cannot be killed, or a controller that is busy, may hold Slurm up for
        // minutes.
        const auto& listed = its_gang->listed;
        const bool is_ending = listed && listed->state == slurm::JobState::kCompleting;
        const bool is_sure = !still->suspicion;
        if (is_ending || (away_since && is_sure)) return wait_for_reason(its_gang, still);
        no_reason_came(its_gang, still);
      });
}

/// Slurm's job goes on: the signal was sent by hand. What has ended by a code of its own has done
/// so.
void SlurmEngine::Impl::no_reason_came(const GangPointer& gang, const TaskPointer& task) {
  const job::ExitStatus& status = task->end->status;
  if (status.stopped || status.lost || status.signal != 0) {
    return lose(gang, task, "Slurm has sent it signal " + std::to_string(task->signal));
  }
  tell_as_it_ended(gang, task);
}

/// Slurm signals the processes of a step one after the other, those of the task before its
/// muster-node: what ends a task may be heard of before it is known to be Slurm's doing.
void SlurmEngine::Impl::suspect_slurm(const TaskPointer& task) {
  const job::ExitStatus& status = task->end->status;
  const bool may_be = status.stopped || status.signal == SIGTERM || status.signal == SIGKILL;
  if (!may_be || task->signal != 0 || task->was_told_to_stop) return;
  task->signal = status.signal != 0 ? status.signal : SIGTERM;
  task->suspicion = polls;
}

/// Slurm has the job run on: whoever ended its tasks, it was not Slurm.
void SlurmEngine::Impl::clear_suspicions(const GangPointer& gang, uint64_t poll) {
  const auto tasks = gang->tasks;
  for (const auto& [name, task] : tasks) {
    if (task->suspicion && poll > *task->suspicion) tell_as_it_ended(gang, task);
  }
}

void SlurmEngine::Impl::tell_as_it_ended(const GangPointer& gang, const TaskPointer& task) {
  task->signal = 0;
  task->suspicion.reset();
  const bool is_told_later = task->fetches || (task->is_leaving && task->line != nullptr);
  if (!is_told_later) tell_end(gang, task);
}

/// Of what ran when its room was taken, or of which nothing will be heard any more.
void SlurmEngine::Impl::lose(const GangPointer& gang, const TaskPointer& task,
                             const std::string& why) {
  if (!gang->seat_of(*task).started || task->is_reported || task->start) return;
  // What had ended by itself only waits for its artifacts.
  const bool is_known = task->end && !slurm::was_ended_by_slurm(*task);
  if (!is_known) {
    if (!task->end) task->end = TaskEnded{.status = {}, .time = base::SystemClock().now()};
    task->end->status.lost = true;
    task->end->status.stopped = task->was_told_to_stop;
    task->end->status.error = why;
  }
  task->signal = 0;
  task->fetches = false;
  nothing_more_of(task);
  farewell(gang, task);
  tell_end(gang, task);
}

}  // namespace muster::engine
