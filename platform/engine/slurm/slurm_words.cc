#include "engine/slurm/slurm_words.h"

#include <algorithm>
#include <array>
#include <optional>

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
    // Of a federation: another cluster has it.
    StateName{"REVOKED", JobState::kCancelled},
};

/// Said beside a base, or in its place.
constexpr std::array kFlags{
    StateName{"COMPLETING", JobState::kCompleting}, StateName{"STAGE_OUT", JobState::kCompleting},
    StateName{"CONFIGURING", JobState::kRunning},   StateName{"POWER_UP_NODE", JobState::kRunning},
    StateName{"RESIZING", JobState::kRunning},      StateName{"SIGNALING", JobState::kRunning},
    StateName{"STOPPED", JobState::kSuspended},     StateName{"REQUEUED", JobState::kPending},
    StateName{"REQUEUE_FED", JobState::kPending},   StateName{"REQUEUE_HOLD", JobState::kPending},
    StateName{"SPECIAL_EXIT", JobState::kPending},
};

/// Nodes in these are given nothing. Of a node that rests to save power, Slurm wakes it.
constexpr std::array<std::string_view, 20> kIdleWords{
    "DOWN",  "DRAIN",    "DRAINED",    "DRAINING",       "DRNG",          "FAIL",        "FAILING",
    "ERROR", "UNKNOWN",  "UNK",        "INVAL",          "INVALID",       "INVALID_REG", "FUTURE",
    "MAINT", "PERFCTRS", "NO_RESPOND", "NOT_RESPONDING", "POWERING_DOWN", "POWER_DOWN"};

/// Of these nothing is heard; so it is of those with an asterisk.
constexpr std::array<std::string_view, 3> kSilentWords{"DOWN", "NO_RESPOND", "NOT_RESPONDING"};

/// Letters and underscores stand together; all else is between words.
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
  // What it comes to is known, and only its nodes are being swept; or it is on its way back.
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

}  // namespace muster::engine::slurm
