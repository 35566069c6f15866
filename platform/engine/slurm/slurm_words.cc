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
    StateName{"COMPLETING", JobState::kCompleting},
    StateName{"STAGE_OUT", JobState::kCompleting},
    StateName{"CONFIGURING", JobState::kConfiguring},
    StateName{"POWER_UP_NODE", JobState::kConfiguring},
    StateName{"RESIZING", JobState::kRunning},
    StateName{"SIGNALING", JobState::kRunning},
    StateName{"STOPPED", JobState::kSuspended},
    StateName{"REQUEUED", JobState::kPending},
    StateName{"REQUEUE_FED", JobState::kPending},
    StateName{"REQUEUE_HOLD", JobState::kPending},
    StateName{"SPECIAL_EXIT", JobState::kPending},
    // Held, because its reservation was deleted: the only word that squeue prints for such a job.
    StateName{"RESV_DEL_HOLD", JobState::kPending},
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
    case JobState::kConfiguring:
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
constexpr std::string_view kAskAdmin = "ask the administrator of the cluster";
constexpr std::string_view kRelease = "release it with scontrol release";
constexpr std::string_view kLessOrElsewhere =
    "sinfo -R shows the cause; fewer workers or another --slurm-partition may find room";
constexpr std::string_view kWaitForPartition =
    "choose another --slurm-partition, or wait until it is up";

constexpr std::array kKnown{
    Known{"Resources", "the resources that it needs are in use", kNone},
    Known{"Priority", "jobs with a higher priority come first", kNone},
    Known{"None", kNone, kNone},
    Known{"Cleaning", "Slurm is cleaning up after its last run", kNone},
    Known{"BeginTime", "its begin time has not come; Slurm sets one when it requeues a job", kNone},
    Known{"Dependency", "it depends on another Slurm job that has not ended", kNone},
    Known{"DependencyNeverSatisfied",
          "it depends on another Slurm job in a way that can no longer be met",
          "stop it, and submit it without that dependency"},
    Known{"JobHeldUser", "its user has held it in Slurm", kRelease},
    Known{"JobHeldAdmin", "the administrator of the cluster has held it", kAskAdmin},
    Known{"job requeued in held state", "Slurm has requeued and held it", kRelease},
    Known{"launch failed requeued held", "a node failed to start it, and Slurm has held it",
          "read the cause in the node's slurmd log; release it with scontrol release"},
    Known{"JobHoldMaxRequeue",
          "Slurm has requeued it as often as the cluster allows, and has held it",
          "stop it, and submit it again"},
    Known{"Licenses", "the licenses that it requests are in use", kNone},
    Known{
        "Reservation", "its reservation has not begun, or is full",
        "scontrol show reservation lists the begin times; choose another with --slurm-reservation"},
    Known{"ReservationDeleted", "its reservation was deleted",
          "submit it with another --slurm-reservation, or without this option"},
    Known{"ReqNodeNotAvail", "nodes that it needs are down, drained or reserved", kLessOrElsewhere},
    Known{"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
          "partitions",
          "nodes that it needs are down, drained or reserved", kLessOrElsewhere},
    Known{"BadConstraints", "no node has the features or resources that it requests",
          "change --slurm-constraint, or the resources of each worker"},
    Known{"PartitionConfig", "the settings of its partition do not allow this job",
          "scontrol show partition lists them; choose another --slurm-partition"},
    Known{"PartitionNodeLimit", "it needs more nodes than its partition has or allows",
          "request fewer workers, or choose another --slurm-partition"},
    Known{"PartitionTimeLimit", "its time limit exceeds the limit of its partition",
          "set a shorter --time-limit, or choose another --slurm-partition"},
    Known{"PartitionDown", "its partition starts no jobs now", kWaitForPartition},
    Known{"PartitionInactive", "its partition accepts and starts no jobs now", kWaitForPartition},
    Known{"AccountNotAllowed", "its partition does not allow its account",
          "choose another --slurm-account or --slurm-partition"},
    Known{"QOSNotAllowed", "its account or partition does not allow its QOS",
          "choose another --slurm-qos"},
    Known{"Job's account not known", "its account does not exist in Slurm",
          "choose another --slurm-partition, or an account that sacctmgr show associations lists"},
    Known{"InvalidAccount", "its account does not exist in Slurm, or its user may not use it",
          "choose another --slurm-account; sacctmgr show associations lists the accounts"},
    Known{"InvalidQOS", "its QOS does not exist in Slurm, or its user may not use it",
          "choose another --slurm-qos; sacctmgr show qos lists the QOS"},
    Known{"QOSUsageThreshold", "the recent use of its QOS is above the threshold",
          "choose another --slurm-qos, or wait"},
    Known{"NodeDown", "a node that it needs is down", "sinfo -R shows the cause"},
    Known{"FrontEndDown", "the front-end node that starts jobs is down", kAskAdmin},
    Known{"InactiveLimit", "it was inactive for longer than Slurm allows", kNone},
    Known{"JobArrayTaskLimit", "as many tasks of its array run as its limit allows", kNone},
    Known{"SchedDefer", "Slurm defers the start of all jobs for a moment", kNone},
    Known{"SystemFailure", "Slurm has failed", kAskAdmin},
    Known{"AssociationJobLimit", "its account is at its limit of jobs", kNone},
    Known{"AssociationResourceLimit", "its account is at its limit of resources", kNone},
    Known{"AssociationTimeLimit", "its account has used up its time limit", kNone},
    Known{"QOSJobLimit", "its QOS is at its limit of jobs", kNone},
    Known{"QOSResourceLimit", "its QOS is at its limit of resources", kNone},
    Known{"QOSTimeLimit", "its QOS has used up its time limit", kNone},
    Known{"PreventLargeJobs", "Slurm does not start large jobs now", kNone},
    Known{"MaxMemPerLimit", "it requests more memory than its partition allows",
          "request less --memory, or choose another --slurm-partition"},
    Known{"Prolog", "the prolog of its nodes is running", kNone},
    Known{"BurstBufferResources", "the burst buffer is full", kNone},
    Known{"BurstBufferStageIn", "its data is being copied into the burst buffer", kNone},
    Known{"DeadLine", "it can no longer end before its deadline", kNone},
    Known{"NodeReboot", "its nodes are rebooting", kNone},
    Known{"ReservationMaintenance", "nodes that it needs are reserved for maintenance", kNone},
};

/// The resource that a limit counts, and how it is counted over time.
struct Amount {
  std::string_view word;
  std::string_view means;
  std::string_view over_time;
};

/// A name comes before its own prefixes.
constexpr std::array kAmounts{
    Amount{"CPU", "CPUs", "CPU minutes"},
    Amount{"GRES", "GPUs (GRES)", "GPU minutes (GRES)"},
    Amount{"Memory", "memory", "memory over time"},
    Amount{"Mem", "memory", "memory over time"},
    Amount{"Node", "nodes", "node minutes"},
    Amount{"Billing", "cost", "cost over time"},
    Amount{"Energy", "energy", "energy over time"},
    Amount{"BB", "the burst buffer", "the burst buffer over time"},
    Amount{"License", "licenses", "license minutes"},
    Amount{"SubmitJobs", "waiting and running jobs", ""},
    Amount{"SubmitJob", "waiting and running jobs", ""},
    Amount{"Jobs", "running jobs", ""},
    Amount{"Wall", "running time", ""},
};

struct Scope {
  std::string_view word;
  std::string_view means;
};

constexpr std::array kScopes{
    Scope{"PerUser", " for one user"},       Scope{"PU", " for one user"},
    Scope{"PerAccount", " for one account"}, Scope{"PA", " for one account"},
    Scope{"PerJob", " for one job"},         Scope{"PerNode", " on one node"},
};

/// Takes `word` from the front of `text`.
bool take(std::string_view& text, std::string_view word) {
  if (text.size() < word.size() || !base::same_but_for_case(text.substr(0, word.size()), word))
    return false;
  text.remove_prefix(word.size());
  return true;
}

/// The words for the amount at the front of `reason`; empty: the amount is unknown.
std::string take_amount(std::string_view& reason) {
  for (const Amount& amount : kAmounts) {
    if (!take(reason, amount.word)) continue;
    const bool of_running = !amount.over_time.empty() && take(reason, "Run");
    const bool is_over_time =
        !amount.over_time.empty() && (take(reason, "Minutes") || take(reason, "Mins"));
    // A "Run" without minutes is not the name of a limit.
    if (of_running && !is_over_time) return {};
    if (of_running) return "the " + std::string(amount.over_time) + " of running jobs";
    return std::string(is_over_time ? amount.over_time : amount.means);
  }
  return {};
}

/// The words for the scope at the front of `reason`; empty: the limit has no scope.
std::string_view take_scope(std::string_view& reason) {
  for (const Scope& scope : kScopes) {
    if (take(reason, scope.word)) return scope.means;
  }
  return {};
}

std::string advice_of_limit(bool is_qos, bool is_of_job) {
  const std::string option = is_qos ? "--slurm-qos" : "--slurm-account";
  if (is_of_job) return "request less, or choose another " + option;
  return "wait until other jobs have ended, or choose another " + option;
}

/// "QOSMaxGRESPerUser", "AssocGrpCPURunMinutesLimit", "MaxGRESPerAccount".
std::optional<ReasonWords> limit_of(std::string_view reason) {
  const bool is_qos = take(reason, "QOS");
  const bool is_account = !is_qos && (take(reason, "Association") || take(reason, "Assoc"));
  const bool is_group = take(reason, "Grp");
  const bool is_least = !is_group && take(reason, "Min");
  if (!is_group && !is_least && !take(reason, "Max")) return std::nullopt;
  const std::string amount = take_amount(reason);
  if (amount.empty()) return std::nullopt;
  const std::string_view scope = take_scope(reason);
  take(reason, "Limit");
  if (!reason.empty()) return std::nullopt;

  const std::string owner = is_qos ? "its QOS" : is_account ? "its account" : "the cluster";
  if (is_least) {
    return ReasonWords{.what = owner + " requires each job to request more " + amount,
                       .advice = advice_of_limit(is_qos, true)};
  }
  const std::string where = is_group ? " for all jobs together" : std::string(scope);
  return ReasonWords{
      .what = "the limit of " + owner + " on " + amount + where + " is reached",
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
