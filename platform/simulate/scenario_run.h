// Runs scenarios over the scheduler and holds what comes of them against what is expected.
//
// In a section whose folder is integration_tests/, cycles are repeated on a virtual clock until
// nothing changes any more; evicted tasks have left before the next cycle. In any other, one plan
// is made with nothing but the action that names the folder (allocate, consolidation, preempt,
// reclaim, stalegangeviction), and seen before anything of it is carried out.
//
// Pure and deterministic.
#pragma once

#include <string>
#include <vector>

#include "simulate/scenarios.h"

namespace muster::simulate {

struct Verdict {
  std::string section;
  std::string name;
  std::string difference;  ///< "expected ... got ..."; empty: all is as expected

  bool operator==(const Verdict&) const = default;
};

/// Which of several equal nodes was taken makes no difference: two nodes are equal where they are
/// of one size and the same jobs run on them at the start.
Verdict run_scenario(const Scenario& scenario);
std::vector<Verdict> run_scenarios(const std::vector<Scenario>& scenarios);

/// A line for each: "ok NAME", or "differs NAME: expected ... got ..."; "N of M" last.
std::string report_of(const std::vector<Verdict>& verdicts);
bool all_as_expected(const std::vector<Verdict>& verdicts);

}  // namespace muster::simulate
