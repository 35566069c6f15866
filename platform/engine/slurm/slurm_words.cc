#include "engine/slurm/slurm_words.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace muster::engine::slurm {

namespace {

struct StateName {
  std::string_view name;
  JobState state;
};

constexpr std::array kBases{
    StateName{"PENDING", JobState::kPending},
    StateName{"RUNNING", JobState::kRunning},
    StateName{"SUSPENDED", JobState::kSuspended},
    StateName{"COMPLETED", JobState::kCompleted},
    StateName{"FAILED", JobState::kFailed},
    StateName{"CANCELLED", JobState::kCancelled},
    StateName{"TIMEOUT", JobState::kTimeout},
    StateName{"DEADLINE", JobState::kDeadline},
    StateName{"NODE_FAIL", JobState::kNodeFailed},
    StateName{"BOOT_FAIL", JobState::kBootFailed},
    StateName{"PREEMPTED", JobState::kPreempted},
    StateName{"OUT_OF_MEMORY", JobState::kOutOfMemory},
    // In a federation: another cluster has the job.
    StateName{"REVOKED", JobState::kCancelled},
};

/// Flags beside a base state, or instead of it.
constexpr std::array kFlags{
    StateName{"COMPLETING", JobState::kCompleting}, StateName{"STAGE_OUT", JobState::kCompleting},
    StateName{"CONFIGURING", JobState::kRunning},   StateName{"POWER_UP_NODE", JobState::kRunning},
    StateName{"RESIZING", JobState::kRunning},      StateName{"SIGNALING", JobState::kRunning},
    StateName{"STOPPED", JobState::kSuspended},     StateName{"REQUEUED", JobState::kPending},
    StateName{"REQUEUE_FED", JobState::kPending},   StateName{"REQUEUE_HOLD", JobState::kPending},
    StateName{"SPECIAL_EXIT", JobState::kPending},
};

/// Nodes in these states get no jobs. (Slurm wakes a node that is powered down to save energy.)
constexpr std::array<std::string_view, 20> kIdleWords{
    "DOWN",  "DRAIN",    "DRAINED",    "DRAINING",       "DRNG",          "FAIL",        "FAILING",
    "ERROR", "UNKNOWN",  "UNK",        "INVAL",          "INVALID",       "INVALID_REG", "FUTURE",
    "MAINT", "PERFCTRS", "NO_RESPOND", "NOT_RESPONDING", "POWERING_DOWN", "POWER_DOWN"};

/// Nodes in these states do not respond; nor do nodes whose state has an asterisk.
constexpr std::array<std::string_view, 3> kSilentWords{"DOWN", "NO_RESPOND", "NOT_RESPONDING"};

/// Words consist of letters and underscores; everything else separates them.
std::vector<std::string> state_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : upper_case(text)) {
    if ((c >= 'A' && c <= 'Z') || c == '_') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

template <size_t N>
bool has_word(const std::array<std::string_view, N>& known, std::string_view state) {
  const std::vector<std::string> words = state_words(state);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(known.begin(), known.end(), word) != known.end();
  });
}

template <size_t N>
std::optional<JobState> first_of(const std::array<StateName, N>& names,
                                 const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const StateName& each : names) {
      if (word == each.name) return each.state;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - ('a' - 'A'));
  }
  return result;
}

JobState job_state_of(std::string_view words) {
  const std::vector<std::string> all = state_words(words);
  const std::optional<JobState> base = first_of(kBases, all);
  const std::optional<JobState> flag = first_of(kFlags, all);
  if (!base) return flag.value_or(JobState::kUnknown);
  if (!flag) return *base;
  // The job's end is known and its nodes are being cleaned up; or the job is being queued again.
  if (*flag == JobState::kCompleting) return *base == JobState::kRunning ? *flag : *base;
  return is_over(*base) && *flag != JobState::kPending ? *base : *flag;
}

bool is_over(JobState state) {
  switch (state) {
    case JobState::kPending:
    case JobState::kRunning:
    case JobState::kSuspended:
    case JobState::kCompleting:
    case JobState::kUnknown:
      return false;
    case JobState::kCompleted:
    case JobState::kFailed:
    case JobState::kCancelled:
    case JobState::kTimeout:
    case JobState::kDeadline:
    case JobState::kNodeFailed:
    case JobState::kBootFailed:
    case JobState::kPreempted:
    case JobState::kOutOfMemory:
      return true;
  }
  return false;
}

bool takes_jobs(std::string_view node_state) {
  return answers(node_state) && !has_word(kIdleWords, node_state);
}

bool answers(std::string_view node_state) {
  const bool is_marked = node_state.find('*') != std::string_view::npos;
  return !node_state.empty() && !is_marked && !has_word(kSilentWords, node_state);
}

// --- why a job waits

// About a hundred reasons are limits. Their names consist of the limit's owner, the resource and
// the scope: these are parsed. All other reasons are in a table.

namespace {

struct Known {
  std::string_view reason;
  std::string_view what;
  std::string_view advice;
};

constexpr std::string_view kNone = "";
constexpr std::string_view kAskAdmin = "ask who runs the cluster";

constexpr std::array kKnown{
    Known{"Resources", "what it needs is in use", kNone},
    Known{"Priority", "others in the queue come before it", kNone},
    Known{"None", kNone, kNone},
    Known{"Cleaning", "what it left from its last run is being cleaned up", kNone},
    Known{"BeginTime", "it is not to begin yet; Slurm puts a job off so when it runs it again",
          kNone},
    Known{"Dependency", "it waits for another job of Slurm's", kNone},
    Known{"DependencyNeverSatisfied", "what it waits for will never be",
          "stop it, and submit it without that option"},
    Known{"JobHeldUser", "it was held in Slurm", "scontrol release lets it start"},
    Known{"JobHeldAdmin", "who runs the cluster has held it", kAskAdmin},
    Known{"job requeued in held state", "it was put back into the queue and held there",
          "scontrol release lets it start"},
    Known{"launch failed requeued held", "a node failed to start it, and Slurm has held it",
          "scontrol release lets it start; the node's slurmd log says why"},
    Known{"JobHoldMaxRequeue", "Slurm has run it again too often, and has held it",
          "stop it and submit it anew"},
    Known{"Licenses", "the licenses that it asks for are in use", kNone},
    Known{"Reservation", "its reservation has not begun, or has no room",
          "--slurm-reservation chooses another; scontrol show reservation tells when it begins"},
    Known{"ReservationDeleted", "its reservation was deleted",
          "submit it with another --slurm-reservation, or with none"},
    Known{"ReqNodeNotAvail", "nodes that it needs are down, drained or reserved",
          "sinfo -R tells why; fewer workers, or another --slurm-partition, may find room"},
    Known{"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
          "partitions",
          "nodes that it needs are down, drained or reserved",
          "sinfo -R tells why; fewer workers, or another --slurm-partition, may find room"},
    Known{"BadConstraints", "no node has the features or the size that it asks for",
          "change --slurm-constraint, or what each worker asks for"},
    Known{"PartitionConfig", "its partition is not made for jobs of this kind",
          "--slurm-partition chooses another; scontrol show partition tells what each is made for"},
    Known{"PartitionNodeLimit", "it needs more nodes than its partition has or allows",
          "ask for fewer workers, or choose another --slurm-partition"},
    Known{"PartitionTimeLimit", "its time limit is beyond that of its partition",
          "give it a shorter --time-limit, or choose another --slurm-partition"},
    Known{"PartitionDown", "its partition starts nothing right now",
          "choose another --slurm-partition, or wait until it is up"},
    Known{"PartitionInactive", "its partition takes nothing right now",
          "choose another --slurm-partition, or wait until it is up"},
    Known{"AccountNotAllowed", "its account may not use its partition",
          "choose another --slurm-account or --slurm-partition"},
    Known{"QOSNotAllowed", "its QOS may not be used with its account or partition",
          "choose another --slurm-qos"},
    Known{"Job's account not known", "its account is not known to Slurm",
          "choose another --slurm-partition, or an account that sacctmgr show associations lists"},
    Known{"InvalidAccount", "its account is not known to Slurm, or is not the user's",
          "choose another --slurm-account; sacctmgr show associations lists those there are"},
    Known{"InvalidQOS", "its QOS is not known to Slurm, or is not the user's",
          "choose another --slurm-qos; sacctmgr show qos lists those there are"},
    Known{"QOSUsageThreshold", "its QOS has been used too much",
          "choose another --slurm-qos, or wait"},
    Known{"NodeDown", "a node that it needs is down", "sinfo -R tells why"},
    Known{"FrontEndDown", "no node that starts jobs is up", kAskAdmin},
    Known{"InactiveLimit", "it was idle for longer than Slurm allows", kNone},
    Known{"JobArrayTaskLimit", "as many of its array run as may", kNone},
    Known{"SchedDefer", "Slurm puts the start of all jobs off for a moment", kNone},
    Known{"SystemFailure", "Slurm itself has failed", kAskAdmin},
    Known{"AssociationJobLimit", "its account has as many jobs as it may", kNone},
    Known{"AssociationResourceLimit", "its account uses as much as it may", kNone},
    Known{"AssociationTimeLimit", "its account has used up its time", kNone},
    Known{"QOSJobLimit", "its QOS has as many jobs as it may", kNone},
    Known{"QOSResourceLimit", "its QOS uses as much as it may", kNone},
    Known{"QOSTimeLimit", "its QOS has used up its time", kNone},
    Known{"PreventLargeJobs", "large jobs are not started at this time", kNone},
    Known{"MaxMemPerLimit", "it asks for more memory than its partition allows",
          "ask for less --memory, or choose another --slurm-partition"},
    Known{"Prolog", "the cluster is preparing its nodes", kNone},
    Known{"BurstBufferResources", "there is no room in the burst buffer", kNone},
    Known{"BurstBufferStageIn", "its data is being brought into the burst buffer", kNone},
    Known{"DeadLine", "it cannot be done before its deadline any more", kNone},
    Known{"NodeReboot", "its nodes are being started anew", kNone},
    Known{"ReservationMaintenance", "nodes that it needs are kept free for maintenance", kNone},
};

struct Part {
  std::string_view word;
  std::string_view means;
};

/// A name comes before its own prefixes.
constexpr std::array kAmounts{
    Part{"CPURunMinutes", "the CPU minutes that its running jobs may still use"},
    Part{"CPUMinutes", "CPU minutes"},
    Part{"CPU", "CPUs"},
    Part{"GRESRunMinutes", "the GPU minutes (GRES) that its running jobs may still use"},
    Part{"GRESMinutes", "GPU minutes (GRES)"},
    Part{"GRES", "GPUs (GRES)"},
    Part{"MemoryRunMinutes", "the memory that its running jobs may still use"},
    Part{"MemRunMinutes", "the memory that its running jobs may still use"},
    Part{"MemoryMinutes", "memory over time"},
    Part{"MemMinutes", "memory over time"},
    Part{"Memory", "memory"},
    Part{"Mem", "memory"},
    Part{"NodeRunMinutes", "the node minutes that its running jobs may still use"},
    Part{"NodeMinutes", "node minutes"},
    Part{"Node", "nodes"},
    Part{"BillingRunMinutes", "what its running jobs may still cost"},
    Part{"BillingMinutes", "cost over time"},
    Part{"Billing", "cost"},
    Part{"Energy", "energy"},
    Part{"BB", "the burst buffer"},
    Part{"License", "licenses"},
    Part{"SubmitJobs", "jobs that wait and run"},
    Part{"SubmitJob", "jobs that wait and run"},
    Part{"Jobs", "running jobs"},
    Part{"Wall", "running time"},
};

constexpr std::array kScopes{
    Part{"PerUser", " for one user"},       Part{"PU", " for one user"},
    Part{"PerAccount", " for one account"}, Part{"PA", " for one account"},
    Part{"PerJob", " for one job"},         Part{"PerNode", " on one node"},
};

/// Takes `word` from the front of `text`.
bool take(std::string_view& text, std::string_view word) {
  if (text.size() < word.size() || !base::same_but_for_case(text.substr(0, word.size()), word))
    return false;
  text.remove_prefix(word.size());
  return true;
}

template <size_t N>
std::string_view take_one(std::string_view& text, const std::array<Part, N>& parts) {
  for (const Part& part : parts) {
    if (take(text, part.word)) return part.means;
  }
  return {};
}

std::string advice_of_limit(bool is_qos, bool is_of_job) {
  const std::string option = is_qos ? "--slurm-qos" : "--slurm-account";
  if (is_of_job) return "ask for less, or choose another " + option;
  return "it starts when others have ended; or choose another " + option;
}

/// "QOSMaxGRESPerUser", "AssocGrpCPURunMinutesLimit", "MaxGRESPerAccount".
std::optional<ReasonWords> limit_of(std::string_view reason) {
  const bool is_qos = take(reason, "QOS");
  const bool is_account = !is_qos && (take(reason, "Association") || take(reason, "Assoc"));
  const bool is_group = take(reason, "Grp");
  const bool is_least = !is_group && take(reason, "Min");
  if (!is_group && !is_least && !take(reason, "Max")) return std::nullopt;
  const std::string_view amount = take_one(reason, kAmounts);
  if (amount.empty()) return std::nullopt;
  // "QOSMaxCpuMinutesPerJobLimit": some names have the minutes as a separate word.
  const bool of_minutes = take(reason, "Minutes") || take(reason, "Mins");
  const std::string_view scope = take_one(reason, kScopes);
  take(reason, "Limit");
  if (!reason.empty()) return std::nullopt;

  const std::string owner = is_qos ? "its QOS" : is_account ? "its account" : "the cluster";
  const std::string of = std::string(amount) + (of_minutes ? " over time" : "");
  if (is_least) {
    return ReasonWords{.what = owner + " wants each job to ask for more " + of,
                       .advice = advice_of_limit(is_qos, true)};
  }
  const std::string where = is_group ? " for all together" : std::string(scope);
  return ReasonWords{
      .what = "the limit of " + owner + " on " + of + where + " is reached",
      .advice = advice_of_limit(is_qos, scope == " for one job" || scope == " on one node")};
}

/// Slurm also writes "launch_failed_requeued_held" with spaces.
std::string spaced(std::string_view text) {
  std::string result(text);
  std::replace(result.begin(), result.end(), '_', ' ');
  return result;
}

std::optional<ReasonWords> known(std::string_view reason) {
  const std::string words = spaced(reason);
  for (const Known& each : kKnown) {
    if (base::same_but_for_case(each.reason, words)) {
      return ReasonWords{.what = std::string(each.what), .advice = std::string(each.advice)};
    }
  }
  return limit_of(reason);
}

std::string_view bare_reason(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
  // squeue puts reasons in brackets; a sentence may end with a bracket of its own.
  if (!text.starts_with('(') || !text.ends_with(')')) return text;
  return bare_reason(text.substr(1, text.size() - 2));
}

}  // namespace

ReasonWords explain_reason(std::string_view reason) {
  reason = bare_reason(reason);
  if (reason.empty()) return {};
  if (const auto words = known(reason)) return *words;
  // "ReqNodeNotAvail, UnavailableNodes:n[1-3]": keep the text after the word.
  const size_t comma = reason.find(',');
  if (comma != std::string_view::npos) {
    if (auto words = known(reason.substr(0, comma))) {
      const std::string_view rest = bare_reason(reason.substr(comma + 1));
      if (!rest.empty() && !rest.ends_with(':')) words->what += " (" + std::string(rest) + ")";
      return *words;
    }
  }
  return {.what = std::string(reason), .advice = {}, .is_known = false};
}

}  // namespace muster::engine::slurm
