#include "control/gang_end.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/log.h"
#include "control/failure.h"
#include "control/first_failure.h"
#include "control/gang_tasks.h"
#include "control/retry.h"

namespace muster::control {

using engine::StopMode;
using job::Job;
using job::Task;
using job::TaskPhase;

namespace {

// A launcher reports a lost worker at once, and ends soon after.
constexpr std::chrono::seconds kLastWords{2};

// Workers of one program end within moments of each other.
constexpr std::chrono::seconds kFarewell{2};

void log_refused_rules(const Job& job) {
  for (const base::Fault& fault : refused_rules(job)) {
    base::log_warning(
        "a retry rule matches nothing; submit its job again with another pattern",
        {{"job", job.id}, {"name", job.spec.name}, {"rule", fault.field}, {"fault", fault.what}});
  }
}

/// More tasks than this are not read to find the one that failed first.
constexpr size_t kMostTasksRead = 64;

/// Nor are more logs than this in total, beside the first: the end of a log is found from its front,
/// and the event loop waits meanwhile.
constexpr uint64_t kMostBytesScanned = 64 << 20;

uint64_t bytes_to_scan(engine::Engine& engine, const engine::GangId& gang, const Task& task) {
  const auto log = engine.open_log(gang, task.name);
  return log ? (*log)->size() : 0;
}

}  // namespace

void set_failure(JobTable& jobs, Job& job, job::Failure failure) {
  if (job.failure) return;
  jobs.note(job, job::Failed{failure.cause});
  job.failure = std::move(failure);
  job.reason = job::Notice{job::Notice::What::kBeingEnded};
}

bool others_come_to_their_end(const Job& job) {
  const Task& leader = job::deciding_task(job);
  return !job.failure && leader.exit && leader.exit->succeeded() &&
         std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
           return task.role == job::TaskRole::kWorker && task.phase != TaskPhase::kEnded &&
                  !task.left && !task.node.empty();
         });
}

// --- stopping

/// No further worker joins, and places that were offered to the gang are released.
void GangEnd::begin() {
  ending_ = true;
  resizing_.end_all_joining();
  resizing_.release_unused();
  begun_();
}

void GangEnd::stop(StopMode mode) {
  start_.stop_fetching();
  begin();
  has_killed_ = has_killed_ || mode == StopMode::kNow;
  context_.services.engine.stop(context_.gang(), live_tasks(context_.job()), mode);
}

void GangEnd::stop_gently() {
  const Job& job = context_.job();
  if (!is_reached_by_leader(job)) return stop(StopMode::kGraceful);
  const Task& leader = job::deciding_task(job);
  const bool is_up = leader.phase == TaskPhase::kStarting || leader.phase == TaskPhase::kRunning;
  if (!is_up) return stop(StopMode::kNow);
  // A launcher that the cluster has suspended cannot end its workers.
  if (is_suspended_()) return stop(StopMode::kGraceful);
  begin();
  context_.services.engine.stop(context_.gang(), {leader.name}, StopMode::kGraceful);
}

void GangEnd::end_by_loss(const Task& lost, std::chrono::milliseconds third_loss_within) {
  Job& job = context_.job();
  const bool is_reached = is_reached_by_leader(job);
  if (is_reached || third_loss_within > std::chrono::milliseconds(0)) {
    fail_by(lost, third_loss_within);
  } else {
    loss_ = lost.name;
    job.reason = job::Notice{job::Notice::What::kBeingEnded};
    // By then all others have ended, or are being killed.
    loss_timer_ = context_.after(job.spec.grace, [this] {
      if (loss_.empty()) return;
      explain_loss();
      context_.change();
    });
  }
  stop_gently();
  if (is_reached) last_words_timer_ = context_.after(kLastWords, [this] { stop(StopMode::kNow); });
}

/// The task that failed first, by the ends of all tasks and by their last lines.
Task GangEnd::find_culprit(const Task* loss) {
  const Job& job = context_.job();
  PrintedEnds printed;
  uint64_t scanned = 0;
  // The likeliest task comes first. The ends decide about those that are not read.
  for (const Task* const task : tasks_to_read(job, kMostTasksRead)) {
    scanned += bytes_to_scan(context_.services.engine, context_.gang(), *task);
    if (scanned > kMostBytesScanned && !printed.empty()) break;
    printed[task->name] = printed_end(context_.services.engine, context_.gang(), job, *task);
  }
  return task_at_fault(job, {.task = loss, .has_killed = has_killed_}, printed);
}

void GangEnd::explain_loss() {
  if (loss_.empty()) return;
  const Task* const lost = find_task(context_.job(), std::exchange(loss_, ""));
  if (lost != nullptr) fail_by(find_culprit(lost));
}

void GangEnd::leader_ended() {
  const Job& job = context_.job();
  if (is_reached_by_leader(job)) return stop(StopMode::kNow);
  if (!ending_ && job.spec.success == job::Success::kAll && others_come_to_their_end(job)) {
    leader_has_succeeded_ = true;  // the last worker ends the job
    return;
  }
  if (ending_ || !others_come_to_their_end(job)) return stop(StopMode::kGraceful);
  begin();
  leader_has_succeeded_ = true;
  last_words_timer_ = context_.after(kFarewell, [this] { stop(StopMode::kGraceful); });
}

void GangEnd::all_lost() {
  ending_ = true;
  start_.stop_fetching();
  resizing_.end_all_joining();
}

void GangEnd::limit_run_time() {
  const Job& job = context_.job();
  const auto& limit = job.spec.scheduling.time_limit;
  if (!limit || !job.started) return;
  const std::chrono::nanoseconds ran = context_.services.clock.now() - *job.started;
  const std::chrono::nanoseconds left =
      std::clamp<std::chrono::nanoseconds>(*limit - ran, std::chrono::nanoseconds(0), *limit);
  limit_timer_ = context_.after(left, [this, limit = *limit] {
    if (ending_) return;
    fail({.task = job::deciding_task(context_.job()).name,
          .cause = job::TimeLimitReached{limit},
          .advice = "give it a longer --time-limit, or checkpoints to continue from"});
    stop_gently();
  });
}

// --- failures and retries

void GangEnd::fail(job::Failure failure) {
  set_failure(context_.services.jobs, context_.job(), std::move(failure));
}

void GangEnd::fail_by(const Task& culprit, std::chrono::milliseconds third_loss_within) {
  const Job& job = context_.job();
  if (job.failure) return;
  const Evidence evidence = evidence_of(context_.services.engine, context_.gang(), job, culprit,
                                        start_.tasks_by_address());
  blame(culprit_of(evidence), lines_of(evidence));
  job::Failure failure = failure_of(evidence);
  if (auto* const ended = std::get_if<job::TaskFailed>(&failure.cause)) {
    ended->third_loss_within = third_loss_within;
  }
  fail(std::move(failure));
}

void GangEnd::blame(const Task& culprit, std::vector<std::string> lines) {
  culprit_ = culprit;
  culprit_lines_ = std::move(lines);
}

void GangEnd::explain_failure() {
  fail_by(find_culprit(nullptr));
}

void GangEnd::abandon(job::Fact why, std::chrono::milliseconds delay) {
  next_attempt_ = {.why = std::move(why), .delay = delay};
}

std::optional<GangEnd::NextAttempt> GangEnd::retry(bool can_change_ports, bool rules_only) {
  Job& job = context_.job();
  if (job.stop_requested || !culprit_) return std::nullopt;
  if (can_change_ports) {
    const auto other_ports =
        start_under_other_ports(job, *culprit_, culprit_lines_, start_.served_ports());
    if (other_ports) return NextAttempt{.why = *other_ports, .delay = {}};
  }
  if (job.retries_used == 0) log_refused_rules(job);  // not at each of a thousand retries
  const auto retry = rules_only ? retry_by_rules(job, *culprit_, culprit_lines_)
                                : retry_of(job, *culprit_, culprit_lines_);
  if (!retry) return std::nullopt;
  if (retry->cost == job::Retry::Cost::kCounted) ++job.retries_used;
  if (!retry->node.empty()) job.avoided_nodes.push_back(retry->node);
  ++job.restarts;
  ++context_.services.metrics.restarts;
  return NextAttempt{.why = job::StartsAgain{.cause = job.failure->cause, .retry = *retry},
                     .delay = backoff(job.restarts)};
}

}  // namespace muster::control
