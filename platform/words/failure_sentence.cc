// Why a job failed, and why it starts again.
#include <csignal>

#include "base/text.h"
#include "base/units.h"
#include "job/amounts.h"
#include "words/parts.h"
#include "words/sentence.h"

namespace muster::words {

namespace {

using job::RanksAstray;
using job::TaskFailed;

constexpr std::string_view kNotTheHostfile = "mpirun did not use the hostfile";

/// "rank 1 on worker-1", "worker-1"
std::string subject_of(const TaskFailed& fact) {
  if (!fact.is_rank) return fact.task;
  const std::string rank = fact.rank ? "rank " + std::to_string(*fact.rank) : "a rank";
  return fact.task.empty() ? rank : rank + " on " + fact.task;
}

/// How it ended.
std::string end_of(const TaskFailed& fact) {
  const job::ExitStatus& exit = fact.exit;
  if (!fact.image.empty() && job::was_not_found(exit)) {
    return "exited with code 127: the command was not found in image '" + fact.image + "'" +
           (exit.error.empty() ? "" : " (" + exit.error + ")");
  }
  return job::explain(exit);
}

std::string misfortune_of(const TaskFailed& fact) {
  switch (fact.how) {
    case TaskFailed::How::kAborted:
      return "called MPI_Abort with error code " + std::to_string(fact.exit.code);
    case TaskFailed::How::kUnfinalized:
      return "ended without MPI_Finalize";
    case TaskFailed::How::kEnded:
      break;
  }
  if (fact.clue_explains_code) return "exited with code " + std::to_string(fact.exit.code);
  return end_of(fact);
}

std::string where_ranks_are(const RanksAstray& fact) {
  const std::string who =
      fact.ranks == 1 ? "the one rank runs" : "all " + std::to_string(fact.ranks) + " ranks run";
  return who + " on the launcher and none on a worker" +
         (fact.is_certain ? ": " + std::string(kNotTheHostfile) : "");
}

std::string how_it_ended(const std::optional<job::Phase>& phase) {
  if (!phase) return "was deleted";
  switch (*phase) {
    case job::Phase::kSucceeded:
      return "succeeded";
    case job::Phase::kFailed:
      return "failed";
    default:
      break;
  }
  return "was stopped";
}

struct CauseWords {
  std::string operator()(const job::Remark& fact) const { return fact.text; }
  std::string operator()(const job::SlurmEnded& fact) const { return slurm_sentence(fact); }
  std::string operator()(const job::KubernetesEnded& fact) const {
    return kubernetes_sentence(fact);
  }
  std::string operator()(const RanksAstray& fact) const { return failure_sentence(fact); }

  std::string operator()(const TaskFailed& fact) const {
    std::string text = subject_of(fact) + " " + misfortune_of(fact);
    if (!fact.clue.empty()) text += ": " + fact.clue;
    if (fact.third_loss_within.count() > 0) {
      text += "; the third worker in a row that was lost within " +
              base::format_duration(fact.third_loss_within) + " of its start";
    }
    if (!fact.exited_before.empty()) {
      text += "; " + fact.exited_before + " had exited with code 0 before";
    }
    return text;
  }

  std::string operator()(const job::WorkerUnreachable& fact) const {
    return (fact.task.empty() ? "the worker at " + fact.host : fact.task) +
           ": mpirun's daemon there (orted) or its remote shell session ended; " + fact.launcher +
           " " + job::explain(fact.exit);
  }

  std::string operator()(const job::TimeLimitReached& fact) const {
    return "ran longer than its time limit of " + base::format_duration(fact.limit);
  }

  std::string operator()(const job::DependencyUnmet& fact) const {
    using Condition = job::Dependency::Condition;
    const job::AwaitedEnd& awaited = fact.awaited;
    const std::string requirement =
        awaited.condition == Condition::kOk
            ? "succeed"
            : (awaited.condition == Condition::kFailed ? "fail" : "end");
    return "did not start: " + quoted_job(awaited.job) + " had to " + requirement + ", but " +
           how_it_ended(fact.phase);
  }

  std::string operator()(const job::NoSshAnswer& fact) const {
    return fact.task + " did not answer on its ssh port within " +
           base::format_duration(fact.bound) +
           (fact.others > 0 ? " (nor did " + job::count_text(fact.others, "other task") + ")" : "");
  }
};

std::string rule_words(const job::Retry& retry) {
  std::string words = "the rule for ";
  if (retry.exit_code) words += "exit code " + std::to_string(*retry.exit_code);
  if (retry.exit_code && !retry.log_pattern.empty()) words += " and ";
  if (!retry.log_pattern.empty()) words += "'" + retry.log_pattern + "' in the log";
  if (!retry.exit_code && retry.log_pattern.empty()) words += "any failure";
  return words;
}

}  // namespace

std::string failure_sentence(const RanksAstray& fact) {
  switch (fact.fault) {
    case RanksAstray::Fault::kEachAlone:
      return std::to_string(fact.ranks) +
             " ranks each run in an MPI world of size 1: the program was built for a different MPI "
             "than the mpirun that started it" +
             (fact.mpi.empty() ? "" : " (" + fact.mpi + ")");
    case RanksAstray::Fault::kOnLauncher:
      return where_ranks_are(fact);
    case RanksAstray::Fault::kRanOnLauncher:
      return "all ranks ran on the launcher and none on a worker: " + std::string(kNotTheHostfile);
    case RanksAstray::Fault::kCrowded:
      return fact.task + " runs " + job::count_text(fact.ranks, "rank") + " and has " +
             job::count_text(fact.slots, "slot") +
             ", while other tasks have free slots: " + std::string(kNotTheHostfile);
    case RanksAstray::Fault::kNoneInAWorker:
      return "the command ran only on the launcher: it started no process on a worker";
    case RanksAstray::Fault::kHangsInFinalize:
      return "MPICH hangs in MPI_Finalize: a rank on " + fact.task +
             " waits for the other ranks, which wait for its answer";
    case RanksAstray::Fault::kTooFewStarted:
      return "only " + std::to_string(fact.ranks) + " of " + std::to_string(fact.of) +
             " ranks started";
  }
  return "";
}

std::string failure_sentence(const job::AttemptAbandoned& fact) {
  using Why = job::AttemptAbandoned::Why;
  switch (fact.why) {
    case Why::kPortTaken:
      return "another process took " +
             (fact.port == 0 ? "a port" : "port " + std::to_string(fact.port)) + " of " +
             fact.task +
             " before its program could listen on it; the job restarts with other ports";
    case Why::kNamesTaken:
      return fact.error + "; the job restarts with other names and addresses";
    case Why::kEngineAway:
      return fact.error + "; the job is retried";
    case Why::kNodeGone:
      return "node " + fact.node + " is gone; the job restarts on other nodes";
    case Why::kNodeSilent:
      return "node " + fact.node + " does not answer; the job is retried";
    case Why::kNodeChanged:
      return "its node has changed; the job restarts on other nodes";
    case Why::kServerRestarted:
      return "the server was restarted while the job was starting; the job restarts";
  }
  return "";
}

std::string sentence(const job::FailureCause& cause) {
  return std::visit(CauseWords{}, cause);
}

bool names_its_task(const job::FailureCause& cause) {
  if (const auto* const ended = std::get_if<job::SlurmEnded>(&cause)) return !ended->task.empty();
  if (const auto* const astray = std::get_if<RanksAstray>(&cause)) {
    return astray->fault != RanksAstray::Fault::kEachAlone &&
           astray->fault != RanksAstray::Fault::kHangsInFinalize &&
           astray->fault != RanksAstray::Fault::kTooFewStarted;
  }
  return !std::holds_alternative<job::TimeLimitReached>(cause);
}

std::string sentence(const job::Retry& retry) {
  const std::string number =
      "retry " + std::to_string(retry.number) + " of " + std::to_string(retry.of);
  switch (retry.cost) {
    case job::Retry::Cost::kAvoidsNode:
      return rule_words(retry) + " excludes node " + retry.node;
    case job::Retry::Cost::kNone:
      return "not the job's fault; no retry is counted";
    case job::Retry::Cost::kCounted:
      break;
  }
  return retry.by_rule ? rule_words(retry) + ": " + number : number;
}

}  // namespace muster::words
