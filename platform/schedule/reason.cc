#include "schedule/reason.h"

#include <algorithm>

#include "job/units.h"

namespace muster::schedule {

namespace {

constexpr size_t kMostHoldersNamed = 3;

std::string quoted_gang(const Gang& gang) {
  return "'" + (gang.name.empty() ? gang.id : gang.name) + "'";
}

/// "project org (above team-a)".
std::string project_text(const std::string& name, const std::string& leaf) {
  return "project " + name + (name == leaf ? "" : " (above " + leaf + ")");
}

/// Who below the project at its bound holds how much, most first: it may be one's own gangs that
/// stand in the way, or a sibling's.
std::optional<std::string> holders(const CapacityRefusal& refusal, const Ledger& ledger) {
  const auto held = [&](ProjectIndex project) {
    const Standing standing = ledger.standing(project);
    return refusal.what == CapacityRefusal::What::kLimit
               ? standing.allocated[refusal.resource]
               : standing.allocated_non_preemptible[refusal.resource];
  };
  std::vector<ProjectIndex> below = ledger.children(refusal.project);
  std::erase_if(below, [&](ProjectIndex project) { return held(project) <= 0; });
  std::stable_sort(below.begin(), below.end(),
                   [&](ProjectIndex one, ProjectIndex other) { return held(one) > held(other); });
  if (below.empty()) return std::nullopt;

  std::vector<std::string> parts;
  int64_t named = 0;
  for (size_t i = 0; i < std::min(below.size(), kMostHoldersNamed); ++i) {
    named += held(below[i]);
    parts.push_back(ledger.name(below[i]) + " holds " +
                    amount_text(refusal.resource, held(below[i])));
  }
  if (below.size() > kMostHoldersNamed) {
    parts.push_back(count_text(static_cast<int64_t>(below.size() - kMostHoldersNamed), "other") +
                    " " + amount_text(refusal.resource, refusal.allocated - named));
  }
  return "below " + ledger.name(refusal.project) + ", " + listed(parts);
}

std::string remedy(const CapacityRefusal& refusal, const std::string& project, int64_t too_much) {
  const bool is_limit = refusal.what == CapacityRefusal::What::kLimit;
  const std::string bound = is_limit ? "limit" : "quota";
  const auto amount = [&](int64_t of) { return amount_text(refusal.resource, of); };
  if (refusal.requested > refusal.bound) {
    return "it asks for more than the whole " + bound + " of project " + project +
           ", and cannot start before that is at least " + amount(refusal.requested);
  }
  return "starts when jobs of project " + project + (is_limit ? "" : " that are not preemptible") +
         " give back " + amount(too_much) + ", or when its " + bound + " is raised to " +
         amount(refusal.bound + too_much);
}

}  // namespace

Reason capacity_reason(const Gang& gang, const CapacityRefusal& refusal, const Ledger& ledger) {
  const bool is_limit = refusal.what == CapacityRefusal::What::kLimit;
  const std::string& name = ledger.name(refusal.project);
  const auto amount = [&](int64_t of) { return amount_text(refusal.resource, of); };
  const auto too_much = static_cast<int64_t>(
      std::min<Wide>(Wide{refusal.allocated} + refusal.requested - refusal.bound, kUnlimited));

  Reason reason;
  reason.constraint = is_limit ? Constraint::kLimit : Constraint::kQuota;
  reason.text = quoted_gang(gang) +
                (is_limit ? " requests " : " is not preemptible and requests ") +
                amount(refusal.requested) + ", but " + project_text(name, gang.project) + " has " +
                (is_limit ? "a limit of " : "a quota of ") + amount(refusal.bound) + ", with " +
                (refusal.allocated == 0 ? "nothing" : amount(refusal.allocated)) + " allocated" +
                (is_limit ? "" : " to jobs that are not preemptible") + ": " + amount(too_much) +
                (refusal.resource == Resource::kMemory ? " too much" : " too many");
  reason.details.push_back(remedy(refusal, name, too_much));
  if (const auto who = holders(refusal, ledger)) reason.details.push_back(*who);
  if (!is_limit) {
    reason.details.emplace_back("submitted as preemptible it may run over quota");
  }
  return reason;
}

namespace {

/// What `by` asks for and either side has a bounded quota of: what the two were compared by. All
/// that it asks for where no quota is bounded.
std::vector<Resource> compared(const Gang& by, const Standing& one, const Standing& other) {
  const auto asks = [&](Resource resource) {
    return std::any_of(by.groups.begin(), by.groups.end(), [&](const TaskGroup& group) {
      const Claim& claim = group.claim;
      if (resource == Resource::kCpu) return claim.cpu_milli > 0;
      if (resource == Resource::kMemory) return claim.memory_bytes > 0;
      return claim.gpus > 0 || claim.gpu_share_milli > 0 || claim.gpu_memory_bytes > 0;
    });
  };
  std::vector<Resource> asked;
  std::copy_if(kResources.begin(), kResources.end(), std::back_inserter(asked), asks);
  std::vector<Resource> bounded;
  std::copy_if(asked.begin(), asked.end(), std::back_inserter(bounded), [&](Resource resource) {
    return one.deserved[resource] < kUnlimited || other.deserved[resource] < kUnlimited;
  });
  return bounded.empty() ? asked : bounded;
}

std::string of(const Amounts& amounts, const std::vector<Resource>& resources) {
  std::vector<std::string> parts;
  for (const Resource resource : resources) {
    parts.push_back(amount_text(resource, amounts[resource]));
  }
  return parts.empty() ? amounts_text(amounts) : listed(parts);
}

std::string standing_text(const std::string& project, const Standing& standing, int priority,
                          const std::vector<Resource>& resources) {
  return project + " uses " + of(standing.allocated, resources) + " (quota " +
         of(standing.deserved, resources) + ", fair share " + of(standing.fair_share, resources) +
         ", priority " + std::to_string(priority) + ")";
}

std::string verb_of(Tense tense) {
  return tense == Tense::kPast ? "was " : "would be ";
}

std::string reclaim_text(const Gang& victim, const Gang& by, const Ledger& ledger, Tense tense) {
  std::string what = verb_of(tense) + "evicted for " + quoted_gang(by) + " of project " +
                     by.project + ", which claims its share";
  const ProjectIndex loser = ledger.find(victim.project);
  const ProjectIndex taker = ledger.find(by.project);
  if (loser == kNoProject || taker == kNoProject) return what;
  auto [losing, taking] = ledger.siblings_above(loser, taker);
  if (losing == kNoProject) std::tie(losing, taking) = std::tie(loser, taker);

  const Standing one = ledger.standing(losing);
  const Standing other = ledger.standing(taking);
  const std::vector<Resource> resources = compared(by, one, other);
  return what + ": " +
         standing_text(project_text(ledger.name(losing), victim.project), one,
                       ledger.priority(losing), resources) +
         "; " +
         standing_text(project_text(ledger.name(taking), by.project), other,
                       ledger.priority(taking), resources);
}

}  // namespace

std::string eviction_text(const Gang& victim, const Gang& by, EvictionCause cause,
                          const Ledger& ledger, Tense tense) {
  switch (cause) {
    case EvictionCause::kReclaimed:
      return reclaim_text(victim, by, ledger, tense);
    case EvictionCause::kPreempted:
      return verb_of(tense) + "preempted by " + quoted_gang(by) +
             " of the same project, which has priority " + std::to_string(by.priority) +
             " where this has " + std::to_string(victim.priority);
    case EvictionCause::kMoved:
      return std::string(tense == Tense::kPast ? "is" : "would be") + " moved so that " +
             quoted_gang(by) + " of project " + by.project + " finds its room in one piece; it " +
             (tense == Tense::kPast ? "starts" : "would start") + " again elsewhere at once";
    case EvictionCause::kStale:
      break;
  }
  return "was evicted: it had been running below its minimum for too long";
}

std::string stale_text(const Gang& gang, int running, Milliseconds grace) {
  return "was evicted: for longer than " + job::format_duration(grace) + " only " +
         count_text(running, "task") + " ran of the " + std::to_string(minimum_tasks(gang)) +
         " that it needs at least";
}

}  // namespace muster::schedule
