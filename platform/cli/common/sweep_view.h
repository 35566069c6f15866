// Sweeps as text: a line for each in a list, a page for one with its trials, and the plan of
// `--dry-run`.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "sweep/sweep.h"

namespace muster::cli {

/// NAME PROJECT METHOD PHASE TRIALS BEST TRIAL AGE
std::string sweep_table(const std::vector<sweep::SweepSummary>& sweeps, base::Time now);

/// "16 of 16 started, 1 completed, 15 stopped".
std::string trial_counts(const sweep::SweepSummary& sweep);

/// "Succeeded; 16 of 16 started, 1 completed, 15 stopped; best accuracy: 0.92 (lr-2)".
std::string sweep_line(const sweep::SweepSummary& sweep);

/// What a request to stop the sweep did: "stopping lr: 2 of 8 started, 2 active", or for a sweep that
/// ended otherwise "lr has ended: Succeeded; 16 of 16 started, 16 completed".
std::string sweep_stop_text(const sweep::SweepSummary& sweep);

/// Fields, and the trials with their values, best first.
std::string sweep_page(const sweep::Sweep& sweep, base::Time now);

/// What a sweep would run and use.
std::string plan_page(const sweep::SweepSpec& spec, const sweep::SweepPlan& plan);

/// The command that runs the trial again to its end.
std::string rerun_command(const sweep::Sweep& sweep, const sweep::Trial& trial);

}  // namespace muster::cli
