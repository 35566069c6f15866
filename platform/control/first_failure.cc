#include "control/first_failure.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <tuple>

#include "control/gang_tasks.h"
#include "job/exit_status.h"

namespace muster::control {

using job::Job;
using job::Task;

namespace {

// A launcher notices the end of its rank within seconds. An older error did not end the program.
constexpr std::chrono::seconds kNoticedWithin{60};

enum class Guilt { kKilled, kFailed, kStoppedAfterError, kConsequence };

/// When Muster asked the tasks to stop, by the clocks of the tasks: at the end of the leader, or of
/// the task whose loss made the gang end.
base::Time asked_to_stop(const Job& job, const Task* loss) {
  return (loss == nullptr ? job::deciding_task(job) : *loss).ended.value_or(base::Time::max());
}

/// Whether a task of the program was killed, and not by Muster, whose SIGKILL comes only a grace
/// period after its request to stop. No program is killed by the loss of another one, so this is the
/// cause even if a busy machine notices it after the ends of others.
bool was_killed_by_others(const Job& job, const Task& task, const GangLoss& loss) {
  if (is_reached_by_leader(job) || task.left || !task.exit || task.exit->lost) return false;
  if (!task.ended || !job::was_killed(*task.exit)) return false;
  return !task.exit->stopped ||
         (!loss.has_killed && *task.ended - job.spec.grace < asked_to_stop(job, loss.task));
}

/// Whether the failure of the leader, which ended by itself, is the reason for the ends of others.
bool has_failed(const Task& leader) {
  return leader.exit && !leader.exit->stopped && !leader.exit->succeeded();
}

/// Whether the task failed by itself, so that it may be the cause.
bool may_be_cause(const Job& job, const Task& task, const Task* loss) {
  const Task& leader = job::deciding_task(job);
  const bool is_reached = is_reached_by_leader(job);
  if (&task == &leader) return (loss != nullptr || !is_reached) && has_failed(leader);
  if (task.left || !is_loss(job, task)) return false;
  // A launcher fails because a worker was lost, even if its own end is noticed first. Where all
  // tasks run the program, a leader that failed is compared with the others.
  return loss != nullptr || is_reached || task.ended < leader.ended || has_failed(leader) ||
         (job.spec.success == job::Success::kAll && leader.exit && leader.exit->succeeded());
}

/// Whether a signal ended a rank of the task. abort() and a launcher's SIGTERM may be consequences.
bool has_crashed(const PrintedEnd& end) {
  if (!end.report) return false;
  const int signal = end.report->status.signal;
  return signal != 0 && signal != SIGABRT && signal != SIGTERM;
}

/// Nothing: the task is not the cause.
std::optional<Guilt> guilt_of(const Job& job, const Task& task, const GangLoss& loss,
                              const PrintedEnd& printed) {
  const Task& leader = job::deciding_task(job);
  // A leader that was killed did not react to the end of another task.
  const bool may_follow =
      loss.task != nullptr || (&task != &leader && leader.exit && !job::was_killed(*leader.exit));
  if (may_follow && was_killed_by_others(job, task, loss)) return Guilt::kKilled;
  const auto& error = printed.error;
  if (may_be_cause(job, task, loss.task)) {
    return reports_loss(printed) ? Guilt::kConsequence : Guilt::kFailed;
  }
  const bool was_stopped = !task.left && task.exit && task.exit->stopped && !task.exit->lost;
  if (is_reached_by_leader(job) || !was_stopped || !error || error->is_consequence) {
    return std::nullopt;
  }
  const base::Time asked = asked_to_stop(job, loss.task);
  const bool is_recent = error->time <= asked && asked - error->time <= kNoticedWithin;
  return is_recent ? std::optional(Guilt::kStoppedAfterError) : std::nullopt;
}

/// An end with an own error began when the error was printed.
std::optional<base::Time> failure_time(const Task& task, const PrintedEnd& printed, Guilt guilt) {
  const bool has_own_error = printed.error && !printed.error->is_consequence;
  return has_own_error && guilt != Guilt::kKilled ? printed.error->time : task.ended;
}

/// The task as if Muster had not asked it to stop, which was too late.
Task ended_by_itself(Task task) {
  const int code = task.exit->signal == 0 && task.exit->code != 0 ? task.exit->code : 1;
  task.exit = job::ExitStatus{.code = code};
  return task;
}

}  // namespace

bool reports_loss(const PrintedEnd& end) {
  return end.error && end.error->is_consequence && !has_crashed(end);
}

const Task* exited_before(const Job& job, const Task& failed) {
  if (job.spec.kind != job::Kind::kTorch || !failed.ended) return nullptr;
  const Task* first = nullptr;
  for (const Task& task : job.tasks) {
    const bool has_exited =
        !task.left && task.exit && task.exit->succeeded() && !task.exit->stopped && task.ended;
    const bool is_earlier = has_exited && *task.ended < *failed.ended &&
                            (first == nullptr || *task.ended < *first->ended);
    if (is_earlier) first = &task;
  }
  return first;
}

std::vector<const Task*> tasks_to_read(const Job& job, size_t most) {
  std::vector<const Task*> tasks;
  if (is_reached_by_leader(job)) return tasks;
  for (const Task& task : job.tasks) {
    const bool has_failed_or_stopped =
        !task.left && task.ended && task.exit && !task.exit->succeeded() && !task.exit->lost;
    if (has_failed_or_stopped) tasks.push_back(&task);
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task* left, const Task* right) { return left->ended < right->ended; });
  if (tasks.size() == 1) tasks.clear();
  tasks.resize(std::min(tasks.size(), most));
  return tasks;
}

Task task_at_fault(const Job& job, const GangLoss& loss, const PrintedEnds& printed) {
  const Task& leader = job::deciding_task(job);
  const Task& first_seen = loss.task == nullptr ? leader : *loss.task;
  struct Suspect {
    const Task* task = nullptr;
    Guilt guilt = Guilt::kConsequence;
    std::optional<base::Time> time;

    auto rank() const { return std::tie(guilt, time); }
  };
  std::optional<Suspect> first;
  for (const Task& task : job.tasks) {
    const auto lines = printed.find(task.name);
    const PrintedEnd end = lines == printed.end() ? PrintedEnd{} : lines->second;
    const auto guilt = guilt_of(job, task, loss, end);
    if (!guilt) continue;
    const Suspect suspect{&task, *guilt, failure_time(task, end, *guilt)};
    const bool is_earlier = !first || suspect.rank() < first->rank() ||
                            (suspect.rank() == first->rank() && &task == &first_seen);
    if (is_earlier) first = suspect;
  }
  if (!first) return first_seen;
  return first->guilt == Guilt::kStoppedAfterError ? ended_by_itself(*first->task) : *first->task;
}

}  // namespace muster::control
