// For tests: the reasons of the scheduler as sentences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/explain.h"
#include "words/sentence.h"

namespace muster::schedule {

struct WaitReason {
  Constraint constraint = Constraint::kNone;
  std::string text;
  std::vector<std::string> details;
  std::optional<Time> may_start;
};

inline WaitReason wait_reason(const WaitVerdict& verdict) {
  return {.constraint = verdict.constraint,
          .text = words::sentence(verdict.reason),
          .details = words::details(verdict.reason),
          .may_start = verdict.may_start};
}

inline std::string eviction_text(const Gang& victim, const Gang& by, EvictionCause cause,
                                 const Ledger& ledger, Tense tense = Tense::kPast) {
  return words::sentence(eviction_fact(victim, by, cause, ledger, tense));
}

}  // namespace muster::schedule
