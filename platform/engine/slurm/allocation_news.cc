#include "engine/slurm/allocation_news.h"

#include <pwd.h>

#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/units.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

namespace {

/// Slurm assumes that a job without a time limit runs for a year. The estimate of a job behind such
/// a job is meaningless.
constexpr std::chrono::days kNoEstimate{300};

using job::Remark;
using job::SlurmEnded;
using job::SlurmState;
using job::SlurmWaits;
using Cause = SlurmEnded::Cause;
using WaitStage = SlurmWaits::Stage;

std::optional<base::Time> estimate_of(const ListedJob& job) {
  if (!job.may_start) return std::nullopt;
  const base::Time now = base::SystemClock().now();
  if (*job.may_start <= now || *job.may_start > now + kNoEstimate) return std::nullopt;
  return job.may_start;
}

/// Slurm's name of the limit, for operators; empty if the reason is a sentence.
std::string constraint_of(const std::string& reason) {
  const std::string word = reason.substr(0, reason.find(','));
  return word.find(' ') == std::string::npos ? word : "";
}

/// Where the job waits, as far as Slurm lists it.
std::vector<job::Detail> where(const ListedJob& job) {
  const auto word = [](const std::string& value) { return value == "(null)" ? "" : value; };
  job::SlurmQueue queue{
      .partition = word(job.partition), .account = word(job.account), .qos = word(job.qos)};
  if (queue == job::SlurmQueue{}) return {};
  return {std::move(queue)};
}

/// "CANCELLED by 1000" -> "alice".
std::string canceller(const std::string& state_text) {
  constexpr std::string_view kBy = " by ";
  const size_t at = state_text.find(kBy);
  if (at == std::string::npos) return "";
  const std::string who = state_text.substr(at + kBy.size());
  const auto number = base::number_of<uid_t>(who);
  const passwd* const user = number ? ::getpwuid(*number) : nullptr;
  return user != nullptr ? user->pw_name : who;
}

AllocationRevoked taken(AllocationRevoked::Why why, SlurmEnded end, std::string advice = "") {
  return {.why = why, .end = std::move(end), .advice = std::move(advice)};
}

AllocationPending waits(SlurmWaits fact, std::vector<job::Detail> details = {}) {
  return {.reason = {std::move(fact), std::move(details)}};
}

/// Whether a time must be shown with its day.
bool is_far(base::Time time) {
  return time >= base::SystemClock().now() + std::chrono::hours(20);
}

}  // namespace

AllocationPending wait_submitted(uint64_t job) {
  return waits({.stage = WaitStage::kSent, .slurm_job = job});
}

AllocationPending wait_rejected_for_now(const std::string& why) {
  return waits({.stage = WaitStage::kToBeSent, .text = why});
}

AllocationPending wait_for_nodes() {
  return waits({.stage = WaitStage::kToBeSent,
                .text = "it must avoid some nodes, and Slurm has not listed its nodes yet"});
}

AllocationPending wait_unsure() {
  return waits({.stage = WaitStage::kUnsure});
}

AllocationPending wait_for_earlier(uint64_t job) {
  return waits({.stage = WaitStage::kEarlier, .slurm_job = job});
}

AllocationPending wait_pending(const ListedJob& job) {
  const ReasonWords words = explain_reason(job.reason);
  const std::optional<base::Time> expected = estimate_of(job);
  const std::string constraint = constraint_of(job.reason);
  AllocationPending result = waits({.stage = WaitStage::kPending,
                                    .slurm_job = job.id,
                                    .reason = words.is_known ? constraint : words.what,
                                    .text = words.is_known ? words.what : "",
                                    .expected = expected,
                                    .names_day = expected && is_far(*expected)},
                                   where(job));
  result.may_start = expected;
  result.constraint = constraint;
  if (!words.advice.empty()) result.reason.details.emplace_back(Remark{words.advice});
  return result;
}

AllocationPending wait_starting(const ListedJob& job, const std::vector<std::string>& silent,
                                const std::string& awaited_at) {
  if (job.state == JobState::kSuspended) {
    return waits({.stage = WaitStage::kSuspended, .slurm_job = job.id}, where(job));
  }
  if (job.state == JobState::kConfiguring) {
    return waits({.stage = WaitStage::kConfiguring, .slurm_job = job.id, .nodes = job.nodes},
                 where(job));
  }
  if (silent.empty()) {
    return waits({.stage = WaitStage::kStarting, .slurm_job = job.id, .nodes = job.nodes},
                 where(job));
  }
  AllocationPending result =
      waits({.stage = WaitStage::kCallingBack, .slurm_job = job.id, .nodes = silent}, where(job));
  result.reason.details.emplace_back(Remark{"awaited at " + awaited_at});
  return result;
}

AllocationPending wait_completing(const ListedJob& job) {
  return waits({.stage = WaitStage::kCompleting, .slurm_job = job.id});
}

SlurmState state_suspended(const ListedJob& job) {
  return {.what = SlurmState::What::kSuspended, .slurm_job = job.id};
}

SlurmState state_ending(const ListedJob& job) {
  return {.what = SlurmState::What::kEnding, .slurm_job = job.id};
}

SlurmState state_controller_away(base::Time since) {
  return {.what = SlurmState::What::kAway, .since = since};
}

AllocationPending wait_for_controller(const AllocationPending& before, uint64_t job,
                                      base::Time since, const std::string& why) {
  AllocationPending result = waits({.stage = WaitStage::kAway, .slurm_job = job, .since = since});
  result.may_start = before.may_start;
  result.constraint = before.constraint;
  for (std::string& line : base::split(why, '\n')) {
    if (!line.empty()) result.reason.details.emplace_back(Remark{std::move(line)});
  }
  return result;
}

AllocationRevoked taken_nodes_late(uint64_t job, const std::vector<std::string>& nodes,
                                   std::chrono::milliseconds bound) {
  return taken(AllocationRevoked::Why::kNodeLost,
               {.cause = Cause::kLate, .slurm_job = job, .nodes = nodes, .bound = bound});
}

AllocationRevoked taken_requeued(uint64_t job, const std::string& broken_node) {
  if (broken_node.empty()) {
    return taken(AllocationRevoked::Why::kEvicted, {.cause = Cause::kRequeued, .slurm_job = job});
  }
  AllocationRevoked lost =
      taken(AllocationRevoked::Why::kNodeLost,
            {.cause = Cause::kRequeuedNode, .slurm_job = job, .nodes = {broken_node}});
  lost.node = broken_node;
  return lost;
}

AllocationRevoked taken_job_over(const ListedJob& job, bool was_allocated) {
  using Why = AllocationRevoked::Why;
  const auto end = [&](Cause cause) { return SlurmEnded{.cause = cause, .slurm_job = job.id}; };
  switch (job.state) {
    case JobState::kTimeout:
      return taken(Why::kFailed, end(Cause::kTimeLimit),
                   "request more time (--time-limit), or a partition that allows it");
    case JobState::kDeadline:
      return taken(Why::kFailed, end(Cause::kDeadline));
    case JobState::kOutOfMemory:
      return taken(Why::kFailed, end(Cause::kOutOfMemory), "request more memory (--memory)");
    case JobState::kBootFailed:
      return taken(Why::kFailed, end(Cause::kBootFailed));
    case JobState::kNodeFailed:
      return taken(Why::kNodeLost, end(Cause::kNodeFailed));
    case JobState::kPreempted:
      return taken(Why::kEvicted, end(Cause::kPreempted));
    case JobState::kCancelled: {
      SlurmEnded cancelled = end(Cause::kCancelled);
      cancelled.user = canceller(job.state_text);
      return taken(Why::kCancelled, std::move(cancelled));
    }
    case JobState::kUnknown:
      if (job.state_text.empty()) return taken(Why::kNodeLost, end(Cause::kForgotten));
      break;
    default:
      break;
  }
  SlurmEnded early = end(was_allocated ? Cause::kEndedEarly : Cause::kNeverBegan);
  early.state = job.state_text;
  early.code = job.exit_code;
  early.signal = job.exit_signal;
  return taken(Why::kFailed, std::move(early),
               was_allocated
                   ? ""
                   : "check that muster-node and Muster's other programs are on the nodes, "
                     "and that the job's script may run there");
}

AllocationRevoked taken_node_down(uint64_t job, const std::string& node) {
  AllocationRevoked lost = taken(AllocationRevoked::Why::kNodeLost,
                                 {.cause = Cause::kNodeDown, .slurm_job = job, .nodes = {node}});
  lost.node = node;
  return lost;
}

AllocationRevoked taken_node_silent(uint64_t job, const std::string& node,
                                    const std::string& task) {
  return taken(AllocationRevoked::Why::kNodeLost,
               {.cause = Cause::kSilent, .slurm_job = job, .nodes = {node}, .task = task});
}

}  // namespace muster::engine::slurm
