#include "engine/slurm/room_words.h"

#include <pwd.h>

#include <optional>
#include <string_view>

#include "base/number.h"
#include "base/text.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

namespace {

/// Slurm counts a job without a time limit as one of a year: what waits behind such a one has an
/// estimate that says nothing.
constexpr std::chrono::days kNoEstimate{300};

std::string in_slurm(uint64_t job) {
  return "waits in Slurm as job " + std::to_string(job);
}

std::string its_job(uint64_t job) {
  return "its Slurm job " + std::to_string(job);
}

std::string clock_time(base::Time time) {
  // 2026-01-31T12:34:56Z
  constexpr size_t kClock = 11;
  constexpr size_t kLength = 8;
  return base::to_rfc3339(time, 0).substr(kClock, kLength) + " UTC";
}

std::string day_and_time(base::Time time) {
  const base::Time now = base::SystemClock().now();
  std::string clock = clock_time(time);
  if (time < now + std::chrono::hours(20)) return clock;
  return base::to_rfc3339(time, 0).substr(0, 10) + " " + clock;
}

std::optional<base::Time> estimate_of(const ListedJob& job) {
  if (!job.may_start) return std::nullopt;
  const base::Time now = base::SystemClock().now();
  if (*job.may_start <= now || *job.may_start > now + kNoEstimate) return std::nullopt;
  return job.may_start;
}

/// The name that operators know it by; a reason that is a sentence has none.
std::string constraint_of(const std::string& reason) {
  const std::string word = reason.substr(0, reason.find(','));
  return word.find(' ') == std::string::npos ? word : "";
}

std::vector<std::string> where(const ListedJob& job) {
  std::string line;
  const auto add = [&line](const char* what, const std::string& value) {
    if (value.empty() || value == "(null)") return;
    line += (line.empty() ? "" : ", ") + std::string(what) + " " + value;
  };
  add("partition", job.partition);
  add("account", job.account);
  add("QOS", job.qos);
  if (line.empty()) return {};
  return {"in Slurm: " + line};
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

std::string exit_words(const ListedJob& job) {
  if (job.exit_signal != 0) return "signal " + std::to_string(job.exit_signal);
  return "code " + std::to_string(job.exit_code);
}

RoomTaken taken(RoomTaken::Why why, std::string what, std::string advice = "") {
  return {.why = why, .what = std::move(what), .advice = std::move(advice), .node = {}};
}

}  // namespace

RoomWaits sent_words(uint64_t job) {
  return {.reason = in_slurm(job), .details = {}, .constraint = {}};
}

RoomWaits not_sent_words(const std::string& why) {
  return {.reason = "waits to be sent to Slurm: " + why, .details = {}, .constraint = {}};
}

RoomWaits unsure_words() {
  return {.reason = "was sent to Slurm, whose answer was lost: its queue is being looked through",
          .details = {},
          .constraint = {}};
}

RoomWaits waiting_words(const ListedJob& job) {
  RoomWaits waits{.reason = in_slurm(job.id),
                  .details = where(job),
                  .may_start = estimate_of(job),
                  .constraint = constraint_of(job.reason)};
  const ReasonWords words = explain_reason(job.reason);
  if (!job.reason.empty()) {
    waits.reason += ": " + words.what;
    if (!waits.constraint.empty() && words.what.find(waits.constraint) == std::string::npos) {
      waits.reason += " (" + waits.constraint + ")";
    }
  }
  if (waits.may_start) {
    waits.reason += "; Slurm expects it to start at " + day_and_time(*waits.may_start);
  }
  if (!words.advice.empty()) waits.details.push_back(words.advice);
  return waits;
}

RoomWaits starting_words(const ListedJob& job, const std::vector<std::string>& silent,
                         const std::string& awaited_at) {
  RoomWaits waits{.reason = its_job(job.id), .details = where(job), .constraint = {}};
  if (job.state == JobState::kSuspended) {
    waits.reason += " is suspended in Slurm";
  } else if (silent.empty()) {
    waits.reason += " starts on " + base::joined(job.nodes, ", ");
  } else {
    waits.reason += " starts: " + base::joined(silent, ", ") +
                    (silent.size() == 1 ? " has" : " have") + " not called back yet";
    waits.details.push_back("awaited at " + awaited_at);
  }
  return waits;
}

RoomWaits completing_words(const ListedJob& job) {
  RoomWaits waits = sent_words(job.id);
  waits.reason += ": Slurm is still ending what ran of it before";
  return waits;
}

std::string suspended_words(const ListedJob& job) {
  return "Slurm has suspended it (job " + std::to_string(job.id) + ")";
}

RoomWaits away_waits(RoomWaits before, uint64_t job, base::Time since, const std::string& why) {
  before.reason =
      (job == 0 ? "waits to be sent to Slurm: " : in_slurm(job) + ": ") + away_words(since);
  before.details = base::split(why, '\n');
  std::erase(before.details, "");
  return before;
}

std::string ending_words(const ListedJob& job) {
  return "Slurm is ending it (job " + std::to_string(job.id) + ")";
}

std::string away_words(base::Time since) {
  return "Slurm's controller does not answer since " + clock_time(since);
}

RoomTaken late_words(uint64_t job, const std::vector<std::string>& nodes,
                     std::chrono::milliseconds bound) {
  const std::string who = nodes.empty()       ? "nodes"
                          : nodes.size() == 1 ? "node " + nodes.front()
                                              : "nodes " + base::joined(nodes, ", ");
  return taken(RoomTaken::Why::kNodeLost,
               who + " of " + its_job(job) + " did not call back within " +
                   std::to_string(std::chrono::ceil<std::chrono::seconds>(bound).count()) + " s");
}

RoomTaken queued_again_words(uint64_t job, const std::string& broken_node) {
  if (broken_node.empty()) {
    return taken(RoomTaken::Why::kEvicted,
                 "Slurm has stopped " + its_job(job) +
                     " and queued it again (for another job, or by scontrol requeue)");
  }
  RoomTaken lost = taken(RoomTaken::Why::kNodeLost, "node " + broken_node + " of " + its_job(job) +
                                                        " is down, and Slurm has queued it again");
  lost.node = broken_node;
  return lost;
}

RoomTaken over_words(const ListedJob& job, bool was_there) {
  using Why = RoomTaken::Why;
  const std::string its = its_job(job.id);
  switch (job.state) {
    case JobState::kTimeout:
      return taken(Why::kFailed, "Slurm ended " + its + " at its time limit (TIMEOUT)",
                   "ask for more time (--time-limit), or for a partition that allows it");
    case JobState::kDeadline:
      return taken(Why::kFailed, "Slurm ended " + its + " at its deadline (DEADLINE)");
    case JobState::kOutOfMemory:
      return taken(Why::kFailed, its + " went out of memory (OUT_OF_MEMORY)",
                   "ask for more memory (--memory)");
    case JobState::kBootFailed:
      return taken(Why::kFailed, "a node of " + its + " did not boot (BOOT_FAIL)");
    case JobState::kNodeFailed:
      return taken(Why::kNodeLost, "a node of " + its + " failed (NODE_FAIL)");
    case JobState::kPreempted:
      return taken(Why::kEvicted, "Slurm has ended " + its + " for another job (PREEMPTED)");
    case JobState::kCancelled: {
      const std::string who = canceller(job.state_text);
      return taken(Why::kCancelled,
                   its + " was cancelled in Slurm" + (who.empty() ? "" : " by " + who));
    }
    case JobState::kUnknown:
      if (job.state_text.empty()) {
        return taken(Why::kNodeLost,
                     "Slurm knows nothing of job " + std::to_string(job.id) + " any more");
      }
      break;
    default:
      break;
  }
  if (was_there) {
    return taken(Why::kFailed, its + " ended (" + job.state_text + ", " + exit_words(job) +
                                   ") though its tasks had not");
  }
  return taken(Why::kFailed,
               its + " ended (" + job.state_text + ", " + exit_words(job) +
                   ") before its nodes had called back",
               "see that muster-node and what stands beside it are on the nodes, and that its "
               "script may run there");
}

RoomTaken node_down_words(uint64_t job, const std::string& node) {
  RoomTaken lost = taken(RoomTaken::Why::kNodeLost,
                         "node " + node + " of " + its_job(job) + " is down, and ended it");
  lost.node = node;
  return lost;
}

RoomTaken silent_words(uint64_t job, const std::string& node, const std::string& task) {
  return taken(RoomTaken::Why::kNodeLost, "what runs " + task + " on node " + node + " of " +
                                              its_job(job) + " has not been heard of for long");
}

}  // namespace muster::engine::slurm
