// The states of a job in Slurm, and why it waits there.
#include "base/text.h"
#include "words/parts.h"

namespace muster::words {

namespace {

std::string in_slurm(uint64_t job) {
  return "waits in Slurm as job " + std::to_string(job);
}

std::string its_job(uint64_t job) {
  return "its Slurm job " + std::to_string(job);
}

/// " 17"; empty if Muster has not found the job in Slurm.
std::string number_of_job(uint64_t job) {
  return job == 0 ? "" : " " + std::to_string(job);
}

std::string clock_time(base::Time time) {
  // 2026-01-31T12:34:56Z
  constexpr size_t kClock = 11;
  constexpr size_t kLength = 8;
  return base::to_rfc3339(time, 0).substr(kClock, kLength) + " UTC";
}

std::string day_and_time(base::Time time, bool names_day) {
  constexpr size_t kDay = 10;
  return (names_day ? base::to_rfc3339(time, 0).substr(0, kDay) + " " : "") + clock_time(time);
}

std::string away_text(const std::optional<base::Time>& since) {
  if (!since) return "Slurm's controller does not answer";
  return "Slurm's controller has not answered since " + clock_time(*since);
}

/// "waits in Slurm as job 17: its nodes are in use (Resources); Slurm expects it to start at ..."
std::string pending_text(const job::SlurmWaits& fact) {
  std::string text = in_slurm(fact.slurm_job);
  const std::string& meaning = fact.text.empty() ? fact.reason : fact.text;
  if (!meaning.empty()) text += ": " + meaning;
  if (!fact.reason.empty() && meaning != fact.reason) text += " (" + fact.reason + ")";
  if (fact.expected) {
    text += "; Slurm expects it to start at " + day_and_time(*fact.expected, fact.names_day);
  }
  return text;
}

std::string nodes_text(const std::vector<std::string>& nodes) {
  if (nodes.empty()) return "nodes";
  return (nodes.size() == 1 ? "node " : "nodes ") + base::joined(nodes);
}

std::string end_in_words(const job::SlurmEnded& fact) {
  return "(" + fact.state + ", " +
         (fact.signal != 0 ? "signal " + std::to_string(fact.signal)
                           : "code " + std::to_string(fact.code)) +
         ")";
}

}  // namespace

std::string slurm_sentence(const job::SlurmWaits& fact) {
  using Stage = job::SlurmWaits::Stage;
  const std::string to_be_sent = "waits to be sent to Slurm: ";
  switch (fact.stage) {
    case Stage::kToBeSent:
      return to_be_sent + fact.text;
    case Stage::kUnsure:
      return "was sent to Slurm, but the answer was lost: Muster searches Slurm's queue for it";
    case Stage::kSent:
      return in_slurm(fact.slurm_job);
    case Stage::kPending:
      return pending_text(fact);
    case Stage::kCompleting:
      return in_slurm(fact.slurm_job) + ": Slurm is still ending its earlier processes";
    case Stage::kSuspended:
      return its_job(fact.slurm_job) + " is suspended in Slurm";
    case Stage::kConfiguring:
      return its_job(fact.slurm_job) + " starts: Slurm is booting or preparing " +
             (fact.nodes.empty() ? "its nodes" : base::joined(fact.nodes)) + " (CONFIGURING)";
    case Stage::kStarting:
      return its_job(fact.slurm_job) + " starts on " + base::joined(fact.nodes);
    case Stage::kCallingBack:
      return its_job(fact.slurm_job) + " starts: " + base::joined(fact.nodes) +
             (fact.nodes.size() == 1 ? " has" : " have") + " not called back yet";
    case Stage::kAway:
      return (fact.slurm_job == 0 ? to_be_sent : in_slurm(fact.slurm_job) + ": ") +
             away_text(fact.since);
    case Stage::kEarlier:
      return "waits for Slurm to end its earlier job" + number_of_job(fact.slurm_job);
  }
  return "";
}

std::string slurm_sentence(const job::SlurmQueue& fact) {
  std::string line;
  const auto add = [&line](const char* what, const std::string& value) {
    if (!value.empty()) line += (line.empty() ? "" : ", ") + std::string(what) + " " + value;
  };
  add("partition", fact.partition);
  add("account", fact.account);
  add("QOS", fact.qos);
  return "in Slurm: " + line;
}

std::string slurm_sentence(const job::SlurmState& fact) {
  using What = job::SlurmState::What;
  const std::string which = " (job " + std::to_string(fact.slurm_job) + ")";
  switch (fact.what) {
    case What::kSuspended:
      return (fact.over ? "Slurm has resumed it" : "Slurm has suspended it") + which;
    case What::kEnding:
      return (fact.over ? "Slurm is no longer ending it" : "Slurm is ending it") + which;
    case What::kAway:
      break;
  }
  return fact.over ? "Slurm's controller answers again"
                   : away_text(fact.since) + "; running tasks continue";
}

std::string slurm_sentence(const job::SlurmEnded& fact) {
  using Cause = job::SlurmEnded::Cause;
  const std::string its = its_job(fact.slurm_job);
  const std::string seconds =
      std::to_string(std::chrono::ceil<std::chrono::seconds>(fact.bound).count()) + " s";
  switch (fact.cause) {
    case Cause::kOther:
      return fact.text;
    case Cause::kTimeLimit:
      return "Slurm ended " + its + " at its time limit (TIMEOUT)";
    case Cause::kDeadline:
      return "Slurm ended " + its + " at its deadline (DEADLINE)";
    case Cause::kOutOfMemory:
      return its + " ran out of memory (OUT_OF_MEMORY)";
    case Cause::kBootFailed:
      return "a node of " + its + " did not boot (BOOT_FAIL)";
    case Cause::kNodeFailed:
      return "a node of " + its + " failed (NODE_FAIL)";
    case Cause::kPreempted:
      return "Slurm has ended " + its + " for another job (PREEMPTED)";
    case Cause::kCancelled:
      return its + " was cancelled in Slurm" + (fact.user.empty() ? "" : " by " + fact.user);
    case Cause::kForgotten:
      return "Slurm has no record of " +
             (fact.slurm_job == 0 ? "its job" : "job" + number_of_job(fact.slurm_job)) +
             " any more";
    case Cause::kEndedEarly:
      return its + " ended " + end_in_words(fact) + " before its tasks ended";
    case Cause::kNeverBegan:
      return its + " ended " + end_in_words(fact) + " before its nodes had called back";
    case Cause::kLate:
      return nodes_text(fact.nodes) + " of " + its + " did not call back within " + seconds;
    case Cause::kRequeued:
      return "Slurm has stopped " + its +
             " and queued it again (for another job, or by scontrol requeue)";
    case Cause::kRequeuedNode:
      return nodes_text(fact.nodes) + " of " + its + " is down, and Slurm has queued it again";
    case Cause::kNodeDown:
      return nodes_text(fact.nodes) + " of " + its + " is down, and ended it";
    case Cause::kSilent:
      return "muster-node of " + fact.task + " on " + nodes_text(fact.nodes) + " of " + its +
             " has not answered for a long time";
  }
  return "";
}

}  // namespace muster::words
