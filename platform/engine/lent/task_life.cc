#include "engine/lent/task_life.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "engine/folder/task_folder.h"

namespace muster::engine::lent {

using base::Error;
using base::ErrorCode;

namespace {

/// Between two tries to write to a full disk.
constexpr std::chrono::seconds kKeepAgain{1};
/// Between two reconnections because of records that cannot be stored, and their number in a row:
/// five minutes.
constexpr std::chrono::milliseconds kReconnectPause{3000};
constexpr int kMostRecordFailures = 100;
/// Slurm ends a job within its KillWait (30 s by default) and some seconds, and then lists the end;
/// Kubernetes ends a pod within its grace period, which is 30 s by default, too.
constexpr std::chrono::seconds kReason{60};
/// For a muster-node to remove the files on its node.
constexpr std::chrono::seconds kRemoval{10};
/// Artifacts are fetched again after a connection was cut, or while a disk is full. The pauses add
/// up to 43 seconds: an API server that restarts is back by then. More tries could fill the disk
/// again and again with artifacts that it has no room for.
constexpr int kFetchTries = 5;
constexpr std::chrono::milliseconds kFetchPause{500};
constexpr int kFetchPauseGrowth = 4;
constexpr int64_t kMostArtifacts = int64_t{64} << 30;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

/// The exit code for the cluster's accounting: a stopped or lost task has not failed by itself.
int exit_code_for_cluster(const TaskEnded& end) {
  const bool by_itself = !end.status.stopped && !end.status.lost;
  return by_itself ? end.status.shell_code() : 0;
}

void add_to_error(HeldTask& task, const std::string& what) {
  std::string& error = task.end->status.error;
  error += (error.empty() ? "" : "; ") + what;
}

void note_failed_fetch(const HeldGang& gang, HeldTask& task, const std::string& why) {
  const std::string what = "cannot fetch its artifacts: " + why;
  base::log_error("task " + task.name + " of job " + gang.gang.job_id + ": " + what);
  add_to_error(task, what);
}

void note_missing_artifacts(const HeldGang& gang, HeldTask& task,
                            const std::vector<std::string>& notes) {
  if (notes.empty() || !task.end) return;
  const std::string what = "its artifacts are incomplete: " + base::joined(notes, "; ");
  base::log_warning("task " + task.name + " of job " + gang.gang.job_id + ": " + what);
  add_to_error(task, what);
}

}  // namespace

// --- reports of muster-nodes

void TaskLife::handle(const GangPointer& gang, const TaskPointer& task, node::NodeMessage message) {
  const auto* const news = std::get_if<node::NodeNews>(&message);
  if (news == nullptr) return;                      // orders go to the other end
  std::visit(Overloaded{[](const node::Hello&) {},  // handled when the connection arrived
                        [&](const node::StartAnswer& answer) {
                          if (!answer.error) return came_up(gang, task);
                          if (const auto start = task->start) start->on_answer(task, answer.error);
                        },
                        [&](const node::ChangeAnswer& answer) {
                          orders_.change_answered(task, answer.number, answer.error);
                        },
                        [&](const node::AnsweredNews&) { answers(gang, task); },
                        [&](const node::EndedNews& news_of_end) {
                          if (!task->up)
                            came_up(gang, task);  // a program may end before the start is reported
                          ended(gang, task, news_of_end.end);
                        },
                        [&](const node::GrownNews& grown) {
                          if (grown.log) log_grown(task);
                          if (grown.ranks) reports_.task(gang->gang, task->name, RanksChanged{});
                        },
                        [&](const node::RecordNews& record) { take_record(gang, task, record); },
                        [&](const node::SignalledNews& signalled) {
                          if (!task->stop_requested) task->signal = signalled.signal;
                          lender_.look_soon();
                        },
                        [&](const node::StreamRefused& refused) {
                          orders_.arrived(gang->gang.job_id, refused.stream, refused.error);
                        },
                        [&](const node::LeftNews&) { left(gang, task); }},
             *news);
}

/// While the disk is full, the record is tried again, and nothing after it is read from the
/// connection. The muster-node keeps the rest, so that the log is complete when the end is
/// reported.
void TaskLife::take_record(const GangPointer& gang, const TaskPointer& task,
                           const node::RecordNews& news) {
  if (!task->mirror) return;
  const auto taken = task->mirror->take(news.record);
  const bool is_later = !taken && taken.error().code == ErrorCode::kExhausted;
  const bool is_known = task->timer && !task->end;  // the task waits for disk space already
  if (!taken && !is_known) {
    base::log_error("task " + task->name + " of job " + gang->gang.job_id + ": " +
                    taken.error().what + (is_later ? "; tried again until there is space" : ""));
  }
  if (is_later && task->line != nullptr) {
    task->line->pause(true);
    task->timer = loop_.after(kKeepAgain, [this, weak_gang = std::weak_ptr(gang),
                                           weak = std::weak_ptr(task), news]() mutable {
      const auto its_gang = weak_gang.lock();
      const auto still = weak.lock();
      const node::RecordNews again = std::move(news);  // resetting the timer destroys its captures
      if (its_gang && still) take_record(its_gang, still, again);
    });
    return;
  }
  if (!taken && reconnects_for(gang, task, news.record.kind)) return;
  if (taken && news.record.kind == FollowKind::kLog) task->record_failures = 0;
  if (is_known) {
    task->timer.reset();
    if (task->line != nullptr) task->line->pause(false);
  }
  switch (news.record.kind) {
    case FollowKind::kLog:
    case FollowKind::kLogStart:
      return log_grown(task);
    case FollowKind::kRank:
      return reports_.task(gang->gang, task->name, RanksChanged{});
    default:
      return;  // the states of the task come as messages of their own
  }
}

/// A disk that fails for a moment (EIO, a stale NFS handle) leaves a gap, and nothing after the gap
/// is taken: the muster-node is to connect again, and sends the record and all after it once more.
/// A disk that fails for good does not keep the end of the task from being reported. A rank that
/// cannot be stored leaves no gap.
bool TaskLife::reconnects_for(const GangPointer& gang, const TaskPointer& task, FollowKind kind) {
  if (kind == FollowKind::kRank || task->line == nullptr || !hang_up_) return false;
  if (++task->record_failures > kMostRecordFailures) return false;
  const bool is_first = task->record_failures == 1;
  task->line->pause(true);
  task->timer = loop_.after(is_first ? std::chrono::milliseconds(0) : kReconnectPause,
                            [this, weak_gang = std::weak_ptr(gang), weak = std::weak_ptr(task),
                             weak_line = std::weak_ptr(task->line)] {
                              const auto its_gang = weak_gang.lock();
                              const auto still = weak.lock();
                              if (!its_gang || !still || still->line == nullptr) return;
                              if (still->line == weak_line.lock()) hang_up_(its_gang, still);
                            });
  return true;
}

/// Also reported again after each reconnection.
void TaskLife::came_up(const GangPointer& gang, const TaskPointer& task) {
  if (const auto start = task->start) return start->on_answer(task, std::nullopt);
  task->up = gang->seat_of(*task).started;
}

void TaskLife::answers(const GangPointer& gang, const TaskPointer& task) {
  task->answered = true;
  if (task->start || std::exchange(task->is_answer_reported, true)) return;
  reports_.task(gang->gang, task->name, TaskAnswered{});
}

void TaskLife::log_grown(const TaskPointer& task) {
  std::erase_if(task->log_watchers, [](const auto& watcher) { return watcher.expired(); });
  const auto watchers = task->log_watchers;
  for (const auto& watcher : watchers) {
    reports_.post([watcher] {
      if (const auto still = watcher.lock()) (*still)();
    });
  }
}

void TaskLife::line_lost(const GangPointer& gang, const TaskPointer& task) {
  orders_.fail_changes(task);
  orders_.fail_streams(task);
  left(gang, task);
}

void TaskLife::start_settled(const GangPointer& gang, const TaskPointer& task) {
  task->start.reset();
  if (task->answered) answers(gang, task);
  if (task->end) {
    finish(gang, task);
  } else if (task->pending_stop && task->line != nullptr) {
    task->line->send(node::StopOrder{*task->pending_stop});
  }
}

// --- the end

void TaskLife::stop(const GangPointer& gang, const TaskPointer& task, StopMode mode) {
  if (task->start || task->end || !gang->seat_of(*task).started) return;
  task->stop_requested = true;
  const bool is_milder = task->pending_stop == StopMode::kNow && mode == StopMode::kGraceful;
  if (!is_milder) task->pending_stop = mode;
  if (task->line != nullptr) task->line->send(node::StopOrder{mode});
}

void TaskLife::ended(const GangPointer& gang, const TaskPointer& task, TaskEnded end) {
  if (task->end) {
    // A muster-node that was not ordered to leave reports the end again.
    if (task->is_reported) dismiss(gang, task);
    return continue_fetch(gang, task);
  }
  task->timer.reset();
  task->end = std::move(end);
  suspect_cluster(task);
  release_watchers(task);
  lender_.on_change();
  if (const auto start = task->start) return start->on_end();
  finish(gang, task);
}

/// The streams of programs beside the task are still awaited: such a program has an exit code,
/// which its muster-node sends before it leaves.
void TaskLife::release_watchers(const TaskPointer& task) {
  task->orders.clear();
  orders_.fail_changes(task);
  if (task->line == nullptr) orders_.fail_streams(task);
  log_grown(task);
  for (auto& over : std::exchange(task->when_over, {})) reports_.post(std::move(over));
}

/// Whether another task has the same folder of artifacts and is still to end. Of tasks that share a
/// folder, on their node or in the whole gang, the last one sends it.
bool TaskLife::another_sends_artifacts(const GangPointer& gang, const TaskPointer& task) const {
  if (options_.has_own_folders && !options_.shares_artifacts) return false;
  const std::string& node = gang->seat_of(*task).node;
  return std::any_of(gang->tasks.begin(), gang->tasks.end(), [&](const auto& each) {
    const HeldTask& other = *each.second;
    const Seat& seat = gang->seat_of(other);
    if (&other == task.get() || !seat.started || other.end) return false;
    // A task whose muster-node is gone may never send anything.
    return options_.shares_artifacts ? other.line != nullptr : seat.node == node;
  });
}

/// Whether the only copy of the task's artifacts may be on its node.
bool TaskLife::owes_artifacts(const GangPointer& gang, const TaskPointer& task) const {
  const Seat& seat = gang->seat_of(*task);
  return seat.has_artifacts && !seat.shares_folder && !seat.left &&
         !another_sends_artifacts(gang, task);
}

void TaskLife::finish(const GangPointer& gang, const TaskPointer& task) {
  if (owes_artifacts(gang, task)) {
    if (task->line != nullptr) return fetch_artifacts(gang, task);
    task->fetch.has_failed = true;
    note_failed_fetch(*gang, *task, "its node is not connected");
  }
  leave(gang, task);
}

/// A try ends when nothing has arrived for `fetch_silence`. A connection that breaks (the API server
/// was restarted, a proxy has cut it) causes another try.
void TaskLife::fetch_artifacts(const GangPointer& gang, const TaskPointer& task) {
  const std::weak_ptr<HeldGang> weak_gang = gang;
  const std::weak_ptr<HeldTask> weak = task;
  const auto stream = std::make_shared<uint64_t>(0);
  // Calls `then` if this try is still the present one.
  const auto with = [weak_gang, weak, stream](const auto& then) {
    const GangPointer its_gang = weak_gang.lock();
    const TaskPointer still = weak.lock();
    const bool is_present = still && still->fetch.is_under_way && still->fetch.stream == *stream;
    if (its_gang && is_present) then(its_gang, still);
  };
  const auto done = [this, with, stream](const Result<void>& how) {
    with([&](const auto& its_gang, const auto& still) { fetched(its_gang, still, *stream, how); });
  };
  const auto arrived = [this, with, done](TaskOrders::Line line) {
    with([&](const auto& its_gang, const auto& still) {
      if (!line) return fetched(its_gang, still, still->fetch.stream, std::move(line).error());
      still->fetch.is_connected = true;
      bound_silence_of_fetch(its_gang, still);
      orders_.receive(
          *std::move(line), gangs_.job_folder(its_gang->gang.job_id) / "artifacts", kMostArtifacts,
          done,
          {.on_piece =
               [this, with] {
                 with([&](const auto& of, const auto& its) { bound_silence_of_fetch(of, its); });
               },
           .on_complete =
               [with](const std::vector<std::string>& notes) {
                 with([&](const auto& of, const auto& its) {
                   its->fetch.is_complete = true;
                   its->timer.reset();  // unpacking takes as long as it takes
                   note_missing_artifacts(*of, *its, notes);
                 });
               }});
    });
  };
  *stream = orders_.expect(gang->gang.job_id, arrived);
  task->fetch.is_under_way = true;
  task->fetch.is_connected = task->fetch.is_complete = false;
  task->fetch.stream = *stream;
  bound_silence_of_fetch(gang, task);
  orders_.send_now(gang, task, node::ArtifactsOrder{.stream = *stream});
}

void TaskLife::bound_silence_of_fetch(const GangPointer& gang, const TaskPointer& task) {
  task->timer = loop_.after(
      options_.fetch_silence, [this, weak_gang = std::weak_ptr(gang), weak = std::weak_ptr(task),
                               stream = task->fetch.stream] {
        const auto its_gang = weak_gang.lock();
        const auto still = weak.lock();
        if (!its_gang || !still) return;
        fetched(its_gang, still, stream,
                Error{.code = ErrorCode::kTimeout, .what = "its node does not send them"});
      });
}

void TaskLife::fetched(const GangPointer& gang, const TaskPointer& task, uint64_t stream,
                       Result<void> how) {
  ArtifactsFetch& fetch = task->fetch;
  if (!fetch.is_under_way || fetch.stream != stream) return;
  fetch.stream = 0;
  orders_.forget(stream);
  if (how) {
    fetch.is_under_way = false;
    return leave(gang, task);
  }
  const Error error = std::move(how).error();
  // kExhausted: a disk is full, or a machine has no descriptor left.
  const bool may_pass = error.code == ErrorCode::kUnavailable ||
                        error.code == ErrorCode::kTimeout || error.code == ErrorCode::kExhausted;
  if (may_pass && ++fetch.failures < kFetchTries) {
    base::log_warning("task " + task->name + " of job " + gang->gang.job_id +
                      ": cannot fetch its artifacts: " + error.what + "; tried again");
    return fetch_later(gang, task);
  }
  fetch_failed(gang, task, error);
}

void TaskLife::fetch_later(const GangPointer& gang, const TaskPointer& task) {
  std::chrono::milliseconds pause = kFetchPause;
  for (int i = 1; i < task->fetch.failures; ++i) pause *= kFetchPauseGrowth;
  task->timer =
      loop_.after(pause, [this, weak_gang = std::weak_ptr(gang), weak = std::weak_ptr(task)] {
        const auto its_gang = weak_gang.lock();
        const auto still = weak.lock();
        if (its_gang && still) continue_fetch(its_gang, still);
      });
}

/// The next try, or the wait for the muster-node that it is ordered from. A try whose stream has
/// arrived continues without the muster-node's other connection; an order that was sent over a lost
/// connection may never have arrived.
void TaskLife::continue_fetch(const GangPointer& gang, const TaskPointer& task) {
  if (!task->fetch.is_under_way) return;
  if (task->fetch.stream != 0 && task->fetch.is_complete) return;
  if (task->fetch.stream != 0 && task->fetch.is_connected) {
    return bound_silence_of_fetch(gang, task);
  }
  orders_.forget(std::exchange(task->fetch.stream, 0));
  if (task->line != nullptr) return fetch_artifacts(gang, task);
  task->timer = loop_.after(
      options_.linger, [this, weak_gang = std::weak_ptr(gang), weak = std::weak_ptr(task)] {
        const auto its_gang = weak_gang.lock();
        const auto still = weak.lock();
        if (!its_gang || !still || !still->fetch.is_under_way) return;
        fetch_failed(its_gang, still,
                     {.code = ErrorCode::kUnavailable, .what = "its node has not reconnected"});
      });
}

void TaskLife::fetch_failed(const GangPointer& gang, const TaskPointer& task, const Error& error) {
  task->fetch.is_under_way = false;
  task->fetch.has_failed = true;
  std::string why = error.what;
  // A pod is deleted with its files.
  if (!options_.has_own_folders) {
    const auto left = std::filesystem::path(options_.folder_on_nodes) / gang->gang.job_id;
    why += "; they are left in " + (left / "artifacts").string() + " on node " +
           gang->seat_of(*task).node;
  }
  note_failed_fetch(*gang, *task, why);
  leave(gang, task);
}

/// If the folder is the node's own, its secrets are there until the muster-node has removed it, and
/// reports that or closes the connection. The end is reported after that: an ended task has left
/// nothing behind.
void TaskLife::leave(const GangPointer& gang, const TaskPointer& task) {
  dismiss(gang, task);
  if (gang->seat_of(*task).shares_folder || task->line == nullptr) return report_end(gang, task);
  task->is_leaving = true;
  task->timer =
      loop_.after(kRemoval, [this, weak_gang = std::weak_ptr(gang), weak = std::weak_ptr(task)] {
        const auto its_gang = weak_gang.lock();
        const auto still = weak.lock();
        if (its_gang && still) report_end(its_gang, still);
      });
}

void TaskLife::left(const GangPointer& gang, const TaskPointer& task) {
  if (std::exchange(task->is_leaving, false)) report_end(gang, task);
}

void TaskLife::dismiss(const GangPointer& gang, const TaskPointer& task) {
  Seat& seat = gang->seat_of(*task);
  if (!std::exchange(seat.left, true)) gangs_.save_soon(gang);
  if (task->line == nullptr) return;
  task->line->send(node::Farewell{.code = task->end ? exit_code_for_cluster(*task->end) : 0,
                                  .keeps_artifacts = task->fetch.has_failed});
}

void TaskLife::report_end(const GangPointer& gang, const TaskPointer& task) {
  if (task->is_reported || !task->end) return;
  if (task->was_ended_by_cluster() && !gang->record.taken) {
    wait_for_reason(gang, task);
    return lender_.look_soon();
  }
  task->is_reported = true;
  task->timer.reset();
  orders_.fail_streams(task);
  TaskEnded end = *task->end;
  end.status.stopped = end.status.stopped || task->stop_requested;
  reports_.task(gang->gang, task->name, std::move(end));
}

void TaskLife::lose(const GangPointer& gang, const TaskPointer& task, const std::string& why) {
  lose(gang, task, job::ExitStatus{.lost = true, .error = why});
}

bool TaskLife::has_own_end(const GangPointer& gang, const TaskPointer& task) {
  if (!task->end && task->signal == 0 && gang->seat_of(*task).started && !task->start) {
    TaskEnded left = end_left_in(gangs_.folder_of(gang->gang, task->name));
    if (is_own_end(left.status)) task->end = std::move(left);
  }
  return task->end && !task->was_ended_by_cluster();
}

void TaskLife::lose(const GangPointer& gang, const TaskPointer& task, job::ExitStatus how) {
  if (!gang->seat_of(*task).started || task->is_reported || task->start) return;
  if (has_own_end(gang, task)) {
    // All of its artifacts are here: the end is reported when they are unpacked.
    if (task->fetch.stream != 0 && task->fetch.is_complete) return;
    const char* const why = options_.has_own_folders ? "its pod is gone" : "its node is gone";
    if (owes_artifacts(gang, task)) {
      task->fetch.has_failed = true;
      note_failed_fetch(*gang, *task, why);
    }
  } else {
    if (!task->end) task->end = TaskEnded{.status = {}, .time = base::SystemClock().now()};
    how.stopped = task->stop_requested;
    how.lost_log_bytes = task->end->status.lost_log_bytes;
    task->end->status = std::move(how);
  }
  task->signal = 0;
  task->fetch.is_under_way = false;
  orders_.forget(std::exchange(task->fetch.stream, 0));
  release_watchers(task);
  dismiss(gang, task);
  report_end(gang, task);
}

bool TaskLife::find_ends_in_folders(const GangPointer& gang) {
  bool all_known = true;
  for (const auto& [name, task] : gang->tasks) {
    if (!gang->seat_of(*task).started || task->end) continue;
    TaskEnded end = end_left_in(gangs_.folder_of(gang->gang, name));
    if (end.status.lost) {
      all_known = false;
      continue;
    }
    ended(gang, task, std::move(end));
  }
  return all_known;
}

// --- whether the cluster has ended it

void TaskLife::wait_for_reason(const GangPointer& gang, const TaskPointer& task) {
  task->timer =
      loop_.after(kReason, [this, weak_gang = std::weak_ptr(gang), weak = std::weak_ptr(task)] {
        const auto its_gang = weak_gang.lock();
        const auto still = weak.lock();
        if (!its_gang || !still) return;
        if (lender_.may_explain(its_gang, still)) return wait_for_reason(its_gang, still);
        no_reason_came(its_gang, still);
      });
}

/// The gang's allocation continues, so a user has sent the signal. A task that has exited with a
/// code of its own has ended by itself.
void TaskLife::no_reason_came(const GangPointer& gang, const TaskPointer& task) {
  const job::ExitStatus& status = task->end->status;
  if (status.stopped || status.lost || status.signal != 0) {
    return lose(gang, task,
                lender_.cluster + " has sent it signal " + std::to_string(task->signal));
  }
  report_as_it_ended(gang, task);
}

/// Slurm signals the processes of a step one after the other, the task's before its muster-node. So
/// the end of a task may arrive before the report that the cluster has sent a signal.
void TaskLife::suspect_cluster(const TaskPointer& task) {
  const job::ExitStatus& status = task->end->status;
  const bool may_be = status.stopped || status.signal == SIGTERM || status.signal == SIGKILL;
  if (!may_be || task->signal != 0 || task->stop_requested) return;
  task->signal = status.signal != 0 ? status.signal : SIGTERM;
  task->suspicion = lender_.looks();
}

void TaskLife::clear_suspicions(const GangPointer& gang, uint64_t look) {
  const auto tasks = gang->tasks;
  for (const auto& [name, task] : tasks) {
    if (task->suspicion && look > *task->suspicion) report_as_it_ended(gang, task);
  }
}

void TaskLife::report_as_it_ended(const GangPointer& gang, const TaskPointer& task) {
  task->signal = 0;
  task->suspicion.reset();
  const bool is_reported_later = task->fetch.is_under_way || task->is_leaving;
  if (!is_reported_later) report_end(gang, task);
}

void TaskLife::ended_by_cluster(const GangPointer& gang) {
  for (const auto& [name, task] : gang->tasks) {
    if (!task->end && !task->ended_earlier && task->signal == 0) task->signal = SIGTERM;
  }
}

void TaskLife::forget_signals(const GangPointer& gang) {
  for (const auto& [name, task] : gang->tasks) {
    if (task->was_ended_by_cluster()) report_as_it_ended(gang, task);
  }
}

}  // namespace muster::engine::lent
