#include "engine/slurm/job_watch.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/slurm/allocation_news.h"
#include "engine/slurm/slurm_words.h"
#include "engine/slurm/submission.h"
#include "words/sentence.h"

namespace muster::engine::slurm {

namespace {

/// A job whose cancellation Slurm has accepted is cancelled again after this long.
constexpr std::chrono::seconds kCancelAgain{60};
/// Polls in a row that must miss a job: a restarted controller may not have loaded all jobs yet.
constexpr int kMissing = 2;
/// For the last reports of muster-nodes, after the end of their Slurm job.
constexpr std::chrono::seconds kLastReportGrace{3};
/// For the muster-nodes of a job that Slurm has resumed to connect again.
constexpr std::chrono::minutes kAfterSuspension{5};
/// With gang scheduling, Slurm suspends a job about once a minute. So that a lost task is found, recent
/// suspensions excuse only so many of its silences.
constexpr int kMostExcuses = 3;
constexpr size_t kMostScriptOutput = 64 << 10;
constexpr size_t kLastScriptLines = 5;

std::string with_printed(std::string text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

/// A node of the gang that is down; empty: no node is down.
std::string broken_node(const HeldGang& gang, const std::vector<ListedNode>& nodes) {
  for (const ListedNode& node : nodes) {
    const bool is_ours = std::any_of(gang.record.seats.begin(), gang.record.seats.end(),
                                     [&](const Seat& seat) { return seat.node == node.name; });
    if (is_ours && !answers(node.state_text)) return node.name;
  }
  return "";
}

bool has_line(const HeldGang& gang) {
  return std::any_of(gang.tasks.begin(), gang.tasks.end(),
                     [](const auto& each) { return each.second->line != nullptr; });
}

/// Whether all started tasks have ended, none of them by Slurm.
bool ended_by_itself(const HeldGang& gang) {
  const auto& seats = gang.record.seats;
  const bool began =
      std::any_of(seats.begin(), seats.end(), [](const Seat& seat) { return seat.started; });
  return began && std::all_of(gang.tasks.begin(), gang.tasks.end(), [&](const auto& each) {
           const HeldTask& task = *each.second;
           return !gang.seat_of(task).started || (task.end && !task.was_ended_by_cluster());
         });
}

/// A failed start stops its tasks: they receive no stop request of their own.
bool is_being_stopped(const HeldTask& task) {
  return task.stop_requested || (task.start && task.start->error);
}

/// Whether Muster is stopping the gang: each task that is up or being started has ended or is being
/// stopped. A task that had ended before this server started is neither, and is never stopped.
bool is_to_stop(const HeldGang& gang) {
  const auto& tasks = gang.tasks;
  return std::any_of(tasks.begin(), tasks.end(),
                     [](const auto& each) { return is_being_stopped(*each.second); }) &&
         std::all_of(tasks.begin(), tasks.end(), [](const auto& each) {
           const HeldTask& task = *each.second;
           return !(task.up || task.start) || task.end || is_being_stopped(task);
         });
}

}  // namespace

// --- listings

void SlurmJobWatch::take_listing(uint64_t poll, const std::vector<ListedJob>& jobs) {
  std::unordered_map<uint64_t, const ListedJob*> by_id;
  for (const ListedJob& job : jobs) by_id[job.id] = &job;
  std::vector<GangPointer> missing;
  for (const GangPointer& gang : gangs_.all()) {
    // The listing may be older than a job that was submitted after the poll.
    if (gang->submitted_at_poll >= poll) continue;
    if (gang->stage == Stage::kUnsure) find_unsure(gang, jobs);
    const bool is_to_be_found = gang->is_unreadable && gang->job.id == 0;
    if (is_to_be_found && gang->stage != Stage::kOver) find_unreadable(gang, jobs);
    if (gang->job.id == 0 || gang->stage == Stage::kOver) continue;
    const auto found = by_id.find(gang->job.id);
    if (found != by_id.end()) {
      gang->missed_polls = 0;
      gang->unanswered_since.reset();
      // The listing may be older than the start of a job whose muster-nodes have called meanwhile.
      // In such a listing, the job still waits, or Slurm is still ending an earlier run of it.
      const JobState state = found->second->state;
      const bool is_older = gang->allocated_at_poll >= poll;
      if (is_older && (state == JobState::kPending || state == JobState::kCompleting)) continue;
      update(gang, *found->second);
      if (state == JobState::kRunning) tasks_.clear_suspicions(gang, poll);
    } else if (++gang->missed_polls >= kMissing || gang->record.given_back) {
      missing.push_back(gang);
    } else {
      queue_.poll_again();
    }
  }
  if (!missing.empty()) look_into_past(std::move(missing));
  cancel_unknown(jobs);
  allocations_.submit_all_unsent();
}

/// Finds a job that may have been submitted by the comment in its record.
void SlurmJobWatch::find_unsure(const GangPointer& gang, const std::vector<ListedJob>& jobs) {
  const ListedJob* found = nullptr;
  const auto& former = gang->job.former;
  for (const ListedJob& job : jobs) {
    if (job.comment != gang->job.comment) continue;
    if (std::find(former.begin(), former.end(), job.id) != former.end()) continue;
    if (found == nullptr || (is_over(found->state) && !is_over(job.state))) found = &job;
  }
  if (found != nullptr) {
    gang->job.id = found->id;
    gang->stage = Stage::kQueued;
    gangs_.save(gang);
    return;
  }
  gang->stage = Stage::kUnsent;
  if (gang->record.given_back) return allocations_.forget(gang);
  allocations_.submit(gang);
}

/// Finds the job of a gang whose record cannot be read. A job that Slurm has queued again may have the
/// comment of an earlier attempt; one that is over belongs to that attempt.
void SlurmJobWatch::find_unreadable(const GangPointer& gang, const std::vector<ListedJob>& jobs) {
  const auto is_known = [&](const ListedJob& job) {
    const auto all = gangs_.all();
    return std::any_of(all.begin(), all.end(),
                       [&](const GangPointer& other) { return other->job.id == job.id; });
  };
  const ListedJob* found = nullptr;
  for (const ListedJob& job : jobs) {
    const bool may_be =
        job.comment == gang->job.comment ||
        (is_comment_of(options_.owner, gang->gang.job_id, job.comment) && !is_over(job.state));
    if (!may_be || is_known(job)) continue;
    if (found == nullptr || is_over(found->state) || !is_over(job.state)) found = &job;
  }
  if (found == nullptr) {
    if (++gang->missed_polls >= kMissing) vanished(gang);
    return;
  }
  gang->missed_polls = 0;
  gang->job.id = found->id;
  gang->job.restarts = found->restarts;
  stop_unreachable(gang);
}

void SlurmJobWatch::stop_unreachable(const GangPointer& gang) {
  const bool is_suspended = gang->listed && gang->listed->state == JobState::kSuspended;
  if (!gang->is_unreadable && !is_suspended) return;
  if (!is_to_stop(*gang) || gang->stage == Stage::kOver) return;
  gang->is_stopped_by_cancel = true;
  allocations_.cancel(gang);
}

void SlurmJobWatch::update(const GangPointer& gang, const ListedJob& listed) {
  if (!gang->listed || gang->listed->state != listed.state) queue_.changed();
  gang->listed = listed;
  for (const auto& [name, task] : gang->tasks) {
    if (task->line != nullptr) gang->excuses.erase(name);
  }
  if (listed.state == JobState::kSuspended) gang->suspended_at = Steady::now();
  if (is_over(listed.state)) return over(gang, listed);
  if (gang->record.given_back || (gang->record.taken && !gang->record.queued_again)) {
    const bool is_late =
        gang->released_since && Steady::now() - *gang->released_since > kCancelAgain;
    const bool is_requested = queue_.is_to_be_cancelled(listed.id);
    if (is_requested || (!is_late && (gang->released_since || gang->is_cancelled))) return;
    gang->released_since = Steady::now();
    return allocations_.cancel(gang);
  }
  if (gang->record.queued_again) return;
  if (listed.restarts > gang->job.restarts ||
      (listed.state == JobState::kPending && gang->stage == Stage::kAllocated)) {
    queued_again(gang, listed);
    if (gang->stage == Stage::kAllocated) return;
  }
  const bool has_no_nodes = listed.state == JobState::kUnknown && listed.nodes.empty();
  if (gang->stage == Stage::kQueued && (listed.state == JobState::kPending || has_no_nodes)) {
    return waits(gang, listed);
  }
  // It was suspended after the stop requests to its tasks.
  if (listed.state == JobState::kSuspended && !gang->is_stopped_by_cancel) stop_unreachable(gang);
  runs(gang, listed);
}

/// Looks in the accounting database for jobs that the controller has forgotten.
void SlurmJobWatch::look_into_past(std::vector<GangPointer> missing) {
  if (std::exchange(is_looking_into_past_, true)) return;  // again after the next listing
  std::vector<uint64_t> ids;
  for (const GangPointer& gang : missing) ids.push_back(gang->job.id);
  client_.past_jobs(std::move(ids), [this, missing](const Result<std::vector<ListedJob>>& past) {
    is_looking_into_past_ = false;
    const std::vector<ListedJob> none;
    const std::vector<ListedJob>& all = past ? *past : none;
    const bool was_away = std::exchange(is_accounting_away_, !past);
    if (!past && !was_away) {
      base::log_warning("cannot read from Slurm's accounting database how forgotten jobs ended: " +
                        past.error().what + "; Muster tries again");
    }
    for (const GangPointer& gang : missing) {
      if (gangs_.find(gang->gang) != gang || gang->stage == Stage::kOver) continue;
      if (gang->missed_polls == 0) continue;  // it is listed again
      if (past) gang->unanswered_since.reset();
      if (!past && waits_for_accounting(gang)) continue;
      const ListedJob* known = nullptr;
      for (const ListedJob& job : all) {
        if (job.id == gang->job.id && is_over(job.state)) known = &job;
      }
      known != nullptr ? over(gang, *known) : vanished(gang);
    }
    queue_.schedule();
  });
}

/// Whether to ask the accounting database again, after the next listing, before the missing job of the
/// gang counts as unknown: it may have been cancelled or have ended.
bool SlurmJobWatch::waits_for_accounting(const GangPointer& gang) const {
  if (gang->record.given_back || gang->record.taken || is_to_stop(*gang)) return false;
  if (!gang->unanswered_since) gang->unanswered_since = Steady::now();
  return Steady::now() - *gang->unanswered_since < options_.accounting_within;
}

/// Cancels jobs of this server without a record: the record was lost with its disk, or the job was
/// submitted twice because an answer came late.
void SlurmJobWatch::cancel_unknown(const std::vector<ListedJob>& jobs) {
  std::set<uint64_t> known;
  std::set<std::string> under_way;
  for (const GangPointer& gang : gangs_.all()) {
    known.insert(gang->job.id);
    if (gang->job.id == 0) under_way.insert(gang->job.comment);
  }
  for (const ListedJob& job : jobs) {
    if (is_over(job.state) || !is_comment_of(options_.owner, job.comment)) continue;
    if (known.count(job.id) > 0 || under_way.count(job.comment) > 0) continue;
    base::log_warning(
        "Slurm job " + std::to_string(job.id) +
        " belongs to this server but to no job of it, and is cancelled: " + job.comment);
    queue_.cancel_later(job.id);
  }
}

void SlurmJobWatch::cancelled(const std::set<uint64_t>& jobs) {
  for (const GangPointer& gang : gangs_.all()) {
    if (jobs.count(gang->job.id) > 0) gang->is_cancelled = true;
  }
}

/// Reports what Slurm does to an allocated gang, if that has changed; nullopt: nothing unusual.
void SlurmJobWatch::report_state(const GangPointer& gang, std::optional<job::SlurmState> state) {
  if (gang->stage != Stage::kAllocated || gang->record.given_back || gang->record.taken) return;
  if (gang->reported_state == state) return;
  gang->reported_state = state;
  reports_.announce(gang->gang, AllocationStateChange{state});
}

void SlurmJobWatch::controller_away() {
  for (const GangPointer& gang : gangs_.all()) {
    if (gang->stage == Stage::kAllocated) {
      report_state(gang, state_controller_away(*queue_.away_since()));
    } else if (gang->stage == Stage::kQueued || gang->stage == Stage::kUnsent) {
      reports_.waits(gang, allocations_.away_waits(*gang));
    }
  }
}

void SlurmJobWatch::controller_back() {
  for (const GangPointer& gang : gangs_.all()) report_state(gang, std::nullopt);
}

// --- a job that waits or runs

void SlurmJobWatch::waits(const GangPointer& gang, const ListedJob& listed) {
  gang->callback_deadline.reset();
  reports_.waits(gang, wait_pending(listed));
}

void SlurmJobWatch::runs(const GangPointer& gang, const ListedJob& listed) {
  if (gang->stage == Stage::kQueued && listed.state == JobState::kCompleting) {
    // Slurm is still ending an earlier run of the job.
    gang->callback_deadline.reset();
    return reports_.waits(gang, wait_completing(listed));
  }
  const bool is_suspended = listed.state == JobState::kSuspended;
  if (gang->stage == Stage::kAllocated) {
    if (queue_.away_since()) return;
    const bool is_ending = listed.state == JobState::kCompleting;
    if (is_suspended) return report_state(gang, state_suspended(listed));
    if (is_ending) return report_state(gang, state_ending(listed));
    return report_state(gang, std::nullopt);
  }
  std::vector<std::string> silent;
  for (const std::string& node : listed.nodes) {
    const bool has_called =
        std::any_of(gang->tasks.begin(), gang->tasks.end(), [&](const auto& each) {
          return each.second->line != nullptr && gang->seat_of(*each.second).node == node;
        });
    if (!has_called) silent.push_back(node);
  }
  reports_.waits(gang, wait_starting(listed, silent, callback_address()));
  // Nodes may take many minutes to boot. In a state of a newer Slurm, it is unknown whether the job
  // has started.
  const bool has_started =
      !is_suspended && listed.state != JobState::kConfiguring && listed.state != JobState::kUnknown;
  if (!has_started) {
    gang->callback_deadline.reset();
  } else if (!gang->callback_deadline) {
    gang->callback_deadline =
        loop_.after(options_.call_back_within, [this, weak = std::weak_ptr(gang)] {
          if (const GangPointer still = weak.lock()) nodes_are_late(still);
        });
  }
  allocations_.report_if_complete(gang);
}

/// "login1 or 10.0.0.4 at port 40123".
std::string SlurmJobWatch::callback_address() const {
  if (!callback_ || !*callback_) return "";
  const node::CallbackSite& site = **callback_;
  return base::joined(site.hosts, " or ") + " at port " + std::to_string(site.hub->port());
}

void SlurmJobWatch::nodes_are_late(const GangPointer& gang) {
  if (gang->stage != Stage::kQueued || gang->record.given_back) return;
  std::vector<std::string> nodes;
  if (gang->listed) nodes = gang->listed->nodes;
  for (const auto& [name, task] : gang->tasks) {
    if (task->line == nullptr) continue;
    std::erase(nodes, gang->seat_of(*task).node);
  }
  AllocationRevoked taken = taken_nodes_late(gang->job.id, nodes, options_.call_back_within);
  taken.node = nodes.empty() ? "" : nodes.front();
  taken.advice = "check that " + options_.node_programs() +
                 "/muster-node exists there, and that the node can connect to " +
                 callback_address() + " (firewall; --slurm-callback)";
  taken.printed = script_output(*gang);
  take_away(gang, std::move(taken));
  allocations_.cancel(gang);
}

// --- a job that is queued again

/// Slurm runs the same job again, with the same key, for a later attempt.
void SlurmJobWatch::queued_again(const GangPointer& gang, const ListedJob& listed) {
  if (gang->stage == Stage::kAllocated) {
    gang->record.queued_again = true;
    client_.nodes([this, gang](const Result<std::vector<ListedNode>>& nodes) {
      report_queued_again(gang, nodes ? *nodes : std::vector<ListedNode>{});
    });
    return;
  }
  // The allocation was not reported, so the same attempt keeps waiting.
  gang->job.restarts = listed.restarts;
  for (const auto& [name, task] : gang->tasks) {
    task->line.reset();
    gang->seat_of(*task).node.clear();
  }
  gang->callback_deadline.reset();
  gangs_.save(gang);
}

void SlurmJobWatch::report_queued_again(const GangPointer& gang,
                                        const std::vector<ListedNode>& nodes) {
  if (!gang->record.queued_again || gang->stage != Stage::kAllocated) return;
  tasks_.ended_by_cluster(gang);
  tasks_.find_ends_in_folders(gang);
  take_away(gang, taken_requeued(gang->job.id, broken_node(*gang, nodes)));
}

// --- a job that is over

/// Whether reports of muster-nodes about the ends of their tasks may still arrive.
bool SlurmJobWatch::waits_for_last_reports(const GangPointer& gang, const ListedJob& listed) {
  const bool by_slurm = listed.state != JobState::kCompleted && listed.state != JobState::kFailed;
  if (by_slurm) tasks_.ended_by_cluster(gang);
  const bool all_known = tasks_.find_ends_in_folders(gang);
  // A signal that a user has sent (scancel --signal) does not mean that Slurm has ended the job.
  if (all_known && !by_slurm) tasks_.forget_signals(gang);
  if (!gang->over_since) gang->over_since = Steady::now();
  return !all_known && Steady::now() - *gang->over_since < kLastReportGrace && has_line(*gang);
}

void SlurmJobWatch::over(const GangPointer& gang, const ListedJob& listed) {
  if (gang->stage == Stage::kOver || gangs_.is_taken_over(*gang)) return;
  const bool was_allocated = gang->stage == Stage::kAllocated && !gang->record.taken;
  if (was_allocated && waits_for_last_reports(gang, listed)) return queue_.poll_soon();
  gang->stage = Stage::kOver;
  if (gang->record.taken || (was_allocated && ended_by_itself(*gang))) return settle_over(gang);
  // Muster has cancelled the job.
  if (was_allocated && (gang->is_unreadable || gang->is_stopped_by_cancel) && is_to_stop(*gang)) {
    starter_.give_up(gang, {.code = base::ErrorCode::kUnavailable, .what = "was stopped"});
    for (const auto& [name, task] : gang->tasks) tasks_.lose(gang, task, "was stopped");
    return settle_over(gang);
  }
  if (!was_allocated) {
    AllocationRevoked taken = taken_job_over(listed, false);
    taken.printed = script_output(*gang);
    take_away(gang, std::move(taken));
    return settle_over(gang);
  }
  const bool may_be_a_node = listed.state == JobState::kFailed ||
                             listed.state == JobState::kUnknown ||
                             listed.state == JobState::kNodeFailed;
  if (!may_be_a_node) {
    take_away(gang, taken_job_over(listed, true));
    return settle_over(gang);
  }
  // When a node fails, srun and the script fail before Slurm lists the job as failed by its node.
  client_.nodes([this, gang, listed](const Result<std::vector<ListedNode>>& nodes) {
    const std::string broken = nodes ? broken_node(*gang, *nodes) : "";
    take_away(gang,
              broken.empty() ? taken_job_over(listed, true) : taken_node_down(listed.id, broken));
    settle_over(gang);
  });
}

void SlurmJobWatch::settle_over(const GangPointer& gang) {
  if (gang->record.given_back) return allocations_.forget(gang);
  gangs_.save(gang);
}

/// The controller has lost the job, or the job has been over for so long that Slurm has forgotten
/// it.
void SlurmJobWatch::vanished(const GangPointer& gang) {
  const bool is_alive = std::any_of(gang->tasks.begin(), gang->tasks.end(), [](const auto& each) {
    return each.second->line != nullptr && !each.second->is_reported;
  });
  if (gang->record.given_back || gang->record.taken) {
    for (const auto& [name, task] : gang->tasks) {
      tasks_.lose(gang, task, "Slurm has forgotten its job");
    }
    gang->stage = Stage::kOver;
    if (gang->record.given_back) allocations_.forget(gang);
    return;
  }
  if (is_alive) return;  // it runs, whatever the controller lists
  if (gang->stage == Stage::kAllocated) {
    return over(gang, {.id = gang->job.id,
                       .comment = {},
                       .state = JobState::kUnknown,
                       .state_text = {},
                       .reason = {},
                       .nodes = {},
                       .partition = {},
                       .account = {},
                       .qos = {}});
  }
  base::log_warning("Slurm has lost job " + std::to_string(gang->job.id) +
                    ", which had not started: it is submitted again");
  gang->job.former.push_back(std::exchange(gang->job.id, 0));
  gang->job.restarts = 0;
  gang->missed_polls = 0;
  gang->unanswered_since.reset();
  gang->listed.reset();
  gangs_.save(gang);
  gang->stage = Stage::kUnsent;
  allocations_.submit(gang);
}

/// Reports that the allocation is gone, and each task that had not ended as lost.
void SlurmJobWatch::take_away(const GangPointer& gang, AllocationRevoked taken) {
  if (gang->record.taken) return;
  gang->record.taken = taken;
  gang->callback_deadline.reset();
  gangs_.save(gang);
  queue_.changed();
  const std::string why = with_printed(words::sentence(taken.end), taken.printed);
  if (!gang->record.given_back) reports_.announce(gang->gang, std::move(taken));
  starter_.give_up(gang, {.code = base::ErrorCode::kUnavailable, .what = why});
  for (const auto& [name, task] : gang->tasks) {
    tasks_.lose(gang, task, why);
    task->timer.reset();
  }
}

bool SlurmJobWatch::task_is_silent(const GangPointer& gang, const TaskPointer& task) {
  if (task->line != nullptr || task->end || gang->record.given_back || gang->record.taken) {
    return false;
  }
  if (queue_.away_since() || gang->unanswered_since || gang->is_unreadable) return true;
  tasks_.find_ends_in_folders(gang);
  if (task->end) return false;
  // A suspended muster-node cannot connect.
  if (gang->listed && gang->listed->state == JobState::kSuspended) return true;
  const bool was_suspended =
      gang->suspended_at && Steady::now() - *gang->suspended_at < kAfterSuspension;
  if (was_suspended && ++gang->excuses[task->name] <= kMostExcuses) return true;
  const std::string node = gang->seat_of(*task).node;
  AllocationRevoked taken = taken_node_silent(gang->job.id, node, task->name);
  taken.node = node;
  take_away(gang, std::move(taken));
  allocations_.cancel(gang);
  return false;
}

/// The last lines that the script, srun and muster-nodes have printed, if they can be read.
std::vector<std::string> SlurmJobWatch::script_output(const HeldGang& gang) const {
  // The script writes to the folder of the attempt that was submitted.
  const auto file =
      gangs_.attempt_folder({gang.gang.job_id, gang.job.submitted_attempt}) / kScriptOutput;
  const auto text = base::read_file(file, kMostScriptOutput);
  if (!text) return {};
  std::vector<std::string> lines = base::split(*text, '\n');
  std::erase(lines, "");
  if (lines.size() > kLastScriptLines) lines.erase(lines.begin(), lines.end() - kLastScriptLines);
  return lines;
}

}  // namespace muster::engine::slurm
